// What this host can run, found out by doing it: each class runs a trivial container once at start-up.

import { access, constants, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../../lib/process.ts'
import type { Capabilities, ClassCapability, IsolationClass } from '../engine.ts'
import { isolationClasses } from '../engine.ts'
import type { Paths } from './paths.ts'
import { type Runtime, runtimeDefaults, type RuntimeOptions } from './runtime.ts'
import { runcRuntime, runscRuntime, writeMaskedRunsc } from './runtime.ts'
import { SECCOMP_PROFILE } from './seccomp.ts'

const PROBE_TIMEOUT_MS = 20_000

const memory = { available: false, detail: 'not probed yet' }

export type Probe = { runtimes: Map<IsolationClass, Runtime>; capabilities: Capabilities }

export async function probeRuntimes(
  paths: Paths,
  instanceId: string,
  asked: 'auto' | IsolationClass,
  options: RuntimeOptions = runtimeDefaults,
): Promise<Probe> {
  const runtimes = new Map<IsolationClass, Runtime>()
  const classes: ClassCapability[] = []
  for (const probe of [probeGvisor, probeRunc]) {
    const { capability, runtime } = await probe(paths, instanceId, options)
    classes.push(capability)
    if (runtime) runtimes.set(capability.class, runtime)
  }
  return { runtimes, capabilities: { classes, ...chooseDefault(classes, asked) } }
}

/** Throws a sentence that says what to install when the class asked for, or any, cannot be had. */
export function chooseDefault(
  classes: ClassCapability[],
  asked: 'auto' | IsolationClass,
): Pick<Capabilities, 'defaultClass' | 'defaultReason'> {
  const wanted = asked === 'auto' ? isolationClasses : [asked]
  const chosen = wanted.map((name) => classes.find((one) => one.class === name)).find((one) => one?.available)
  if (!chosen) {
    const why = classes.map((one) => `${one.class}: ${one.detail}`).join('; ')
    throw new Error(`No isolation class is available (BERTH_ISOLATION=${asked}). ${why}`)
  }
  const reason =
    asked !== 'auto'
      ? `set by BERTH_ISOLATION (${chosen.detail})`
      : chosen.class === 'gvisor'
        ? `${chosen.detail} passed its start-up probe, and it is the safer one for code nobody vouches for`
        : `gVisor is not available (${classes.find((one) => one.class === 'gvisor')?.detail ?? ''})`
  return { defaultClass: chosen.class, defaultReason: reason }
}

async function probeRunc(
  paths: Paths,
  instanceId: string,
  options: RuntimeOptions,
): Promise<{ capability: ClassCapability; runtime?: Runtime }> {
  const runtime = runcRuntime(paths.runtimeRoot('runc'), options)
  const version = await versionOf(options.runc, /runc version (\S+)/)
  if (!version) return unavailable('runc', 'install the Debian package runc')
  const profile = await access(SECCOMP_PROFILE, constants.R_OK).then(
    () => true,
    () => false,
  )
  if (!profile) return unavailable('runc', 'install the Debian package golang-github-containers-common')
  const said = await tryContainer(paths, runtime, instanceId)
  if (said !== null) return unavailable('runc', `runc ${version} could not run a container: ${said}`)
  return { capability: { class: 'runc', available: true, detail: `runc ${version}`, memory }, runtime }
}

async function probeGvisor(
  paths: Paths,
  instanceId: string,
  options: RuntimeOptions,
): Promise<{ capability: ClassCapability; runtime?: Runtime }> {
  const version = await versionOf(options.runsc, /runsc version (?:release-)?(\S+)/)
  if (!version) {
    return unavailable('gvisor', 'install runsc (Debian: bookworm-backports, or trixie and later)')
  }
  const root = paths.runtimeRoot('runsc')
  const plain = runscRuntime(root, options)
  const said = await tryContainer(paths, plain, instanceId)
  if (said === null)
    return {
      capability: { class: 'gvisor', available: true, detail: `runsc ${version}`, memory },
      runtime: plain,
    }
  const masked = runscRuntime(root, options, await writeMaskedRunsc(paths.helper, options.runsc))
  const saidMasked = await tryContainer(paths, masked, instanceId)
  if (saidMasked !== null)
    return unavailable('gvisor', `runsc ${version} could not run a container: ${saidMasked}`)
  const detail = `runsc ${version}, with /proc/sys/net hidden from it`
  return { capability: { class: 'gvisor', available: true, detail, memory }, runtime: masked }
}

function unavailable(name: IsolationClass, detail: string): { capability: ClassCapability } {
  return { capability: { class: name, available: false, detail, memory } }
}

async function versionOf(binary: string, pattern: RegExp): Promise<string | null> {
  const shown = await run(binary, ['--version'], { timeoutMs: PROBE_TIMEOUT_MS }).catch(() => null)
  return shown ? (pattern.exec(shown.stdout)?.[1] ?? null) : null
}

/** Runs the static helper in a container of nothing else. Null when it worked, else what was said. */
async function tryContainer(paths: Paths, runtime: Runtime, instanceId: string): Promise<string | null> {
  const container = `probe-${runtime.class}-${instanceId}`
  const bundle = join(paths.runs, container)
  const rootfs = join(bundle, 'rootfs')
  const namespace = `berth-${instanceId}-probe`
  await mkdir(rootfs, { recursive: true, mode: 0o700 })
  const ip = (args: string[]) => run('ip', args, { timeoutMs: PROBE_TIMEOUT_MS })
  try {
    // A network namespace by path, as machines have: without it the fault that masking mends does not show.
    await ip(['netns', 'delete', namespace])
    await ip(['netns', 'add', namespace])
    await writeFile(join(bundle, 'config.json'), JSON.stringify(probeConfig(paths, namespace, rootfs)), {
      mode: 0o600,
    })
    const outcome = await run(
      runtime.launcher,
      [...runtime.globalArgs, 'run', '--bundle', bundle, container],
      { timeoutMs: PROBE_TIMEOUT_MS },
    )
    if (outcome.exitCode === 0) return null
    return outcome.timedOut ? 'it hung' : outcome.stderr.trim().slice(-300) || `exit code ${outcome.exitCode}`
  } finally {
    await run(runtime.binary, [...runtime.globalArgs, 'delete', '-force', container], {
      timeoutMs: PROBE_TIMEOUT_MS,
    })
    await ip(['netns', 'delete', namespace])
    await rm(bundle, { recursive: true, force: true })
  }
}

function probeConfig(paths: Paths, namespace: string, rootfs: string): object {
  return {
    ociVersion: '1.0.2',
    root: { path: rootfs, readonly: false },
    process: {
      user: { uid: 0, gid: 0 },
      args: ['/helper/busybox', 'true'],
      env: [],
      cwd: '/',
      noNewPrivileges: true,
    },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
      { destination: '/helper', type: 'bind', source: paths.helper, options: ['bind', 'ro'] },
    ],
    linux: {
      namespaces: [
        { type: 'pid' },
        { type: 'ipc' },
        { type: 'uts' },
        { type: 'mount' },
        { type: 'network', path: `/run/netns/${namespace}` },
      ],
    },
  }
}
