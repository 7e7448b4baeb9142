// Finds out what this host can run: each class runs a trivial container once at start-up, and if memory can be kept,
// one is checkpointed and restored (checkpoint/probe.ts).

import { access, constants, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../kernel/programs.ts'
import type { Capabilities, ClassCapability, IsolationClass } from '../../engine.ts'
import { isolationClasses } from '../../engine.ts'
import { type Criu, criuPrograms, openCriu } from '../checkpoint/criu.ts'
import type { Paths } from '../paths.ts'
import { probeConfig, probeNamespace } from './probe-bundle.ts'
import { probeCheckpoint } from '../checkpoint/probe.ts'
import type { Program } from '../exec/control.ts'
import { probeControl, type ProbedControl, removeProbe } from '../exec/control-probe.ts'
import { type Runtime, runtimeDefaults, type RuntimeOptions } from './runtime.ts'
import { runcRuntime, runscRuntime, writeMaskedRunsc } from './runtime.ts'
import { RELAY } from '../relay/relay.ts'
import { SECCOMP_PROFILE } from '../kernel/seccomp.ts'

const PROBE_TIMEOUT_MS = 20_000
/** Bit 24. */
const CAP_SYS_RESOURCE = 1n << 24n

/**
 * gVisor's checkpoints are made by a running sandbox, so they are not of the instant at which its disk is copied.
 * With a network, those of 2024 restore a sandbox that does nothing.
 */
const noGvisorMemory = {
  available: false,
  detail:
    'gVisor saves memory only while its sandbox runs on, so not together with the disk: disks are kept alone',
}

export type Probe = { runtimes: Map<IsolationClass, Runtime>; capabilities: Capabilities }

export async function probeRuntimes(
  paths: Paths,
  instanceId: string,
  asked: 'auto' | IsolationClass,
  options: RuntimeOptions = runtimeDefaults,
): Promise<Probe> {
  const runtimes = new Map<IsolationClass, Runtime>()
  const classes: ClassCapability[] = []
  const probes = [probeGvisor, probeRunc].map((probe) => probe(paths, instanceId, options))
  for (const { capability, runtime } of await Promise.all(probes)) {
    classes.push(capability)
    if (runtime) runtimes.set(capability.class, runtime)
  }
  return {
    runtimes,
    capabilities: { classes, ...chooseDefault(classes, asked), egress: true, brokersSecrets: true },
  }
}

/** Throws a sentence that says what to install if the requested class, or any, is unavailable. */
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
        ? `${chosen.detail} passed its start-up probe, and it is the safer one for untrusted code`
        : `gVisor is not available (${classes.find((one) => one.class === 'gvisor')?.detail ?? ''})`
  return { defaultClass: chosen.class, defaultReason: reason }
}

async function probeRunc(
  paths: Paths,
  instanceId: string,
  options: RuntimeOptions,
): Promise<{ capability: ClassCapability; runtime?: Runtime }> {
  const version = await versionOf(options.runc, /runc version (\S+)/)
  if (!version) return unavailable('runc', 'install the Debian package runc')
  const profile = await access(SECCOMP_PROFILE, constants.R_OK).then(
    () => true,
    () => false,
  )
  if (!profile) return unavailable('runc', 'install the Debian package golang-github-containers-common')
  const runtime = runcRuntime(paths.runtimeRoot('runc'), version, options)
  const { said } = await tryContainer(paths, runtime, instanceId)
  if (said !== null) return unavailable('runc', `runc ${version} could not run a container: ${said}`)
  const { criu, memory } = await probeCriu(paths, runtime, instanceId, options.criu ?? criuPrograms)
  const capability = { class: 'runc', available: true, detail: `runc ${version}`, memory } as const
  return { capability, runtime: { ...runtime, criu } }
}

/** Returns the first program that works. */
async function probeCriu(
  paths: Paths,
  runtime: Runtime,
  instanceId: string,
  programs: string[],
): Promise<{ criu: Criu | null; memory: ClassCapability['memory'] }> {
  let detail = 'install CRIU (Debian: criu), or run the set-up again'
  for (const program of programs) {
    const criu = await openCriu(paths.criu, program)
    if (!criu) continue
    const said = await probeCheckpoint(paths, { ...runtime, criu }, instanceId)
    if (said === null)
      return { criu, memory: { available: true, detail: `CRIU ${criu.version}${await limits()}` } }
    detail = `CRIU ${criu.version} could not save and restore a container: ${said}`
  }
  return { criu: null, memory: { available: false, detail } }
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
  const tried = await tryGvisor(paths, instanceId, version, options)
  if (tried.kind === 'failed')
    return unavailable('gvisor', `runsc ${version} could not run a container: ${tried.said}`)
  const asked = options.gvisorCommands ?? 'auto'
  const { runtime } = tried
  const probed = asked === 'runsc' ? null : await tryControl(paths, runtime, instanceId)
  if (asked === 'direct' && probed?.kind === 'fails')
    return unavailable('gvisor', `runsc ${version} does not take commands directly: ${probed.why}`)
  const program = probed?.kind === 'works' ? probed.program : null
  const ways = probed?.kind === 'fails' ? `, commands by its exec only (${probed.why})` : ''
  const detail = `runsc ${version}${tried.note}${ways}`
  return {
    capability: { class: 'gvisor', available: true, detail, memory: noGvisorMemory },
    runtime: { ...runtime, commands: { program, otherwise: asked !== 'direct' } },
  }
}

async function tryGvisor(
  paths: Paths,
  instanceId: string,
  version: string,
  options: RuntimeOptions,
): Promise<{ kind: 'works'; runtime: Runtime; note: string } | { kind: 'failed'; said: string }> {
  const root = paths.runtimeRoot('runsc')
  const plain = runscRuntime(root, version, options)
  const first = await tryContainer(paths, plain, instanceId)
  if (first.said === null)
    return { kind: 'works', runtime: { ...plain, cutsWrites: first.cutsWrites }, note: '' }
  const masked = runscRuntime(root, version, options, await writeMaskedRunsc(paths.helper, options.runsc))
  const { said, cutsWrites } = await tryContainer(paths, masked, instanceId)
  if (said !== null) return { kind: 'failed', said }
  return { kind: 'works', runtime: { ...masked, cutsWrites }, note: ', with /proc/sys/net hidden from it' }
}

/** Of the files that were tried: who opens an engine again in the same process need not try again. */
const proven = new Map<string, Program>()

async function tryControl(paths: Paths, runtime: Runtime, instanceId: string): Promise<ProbedControl> {
  const { dev, ino, mtimeMs, size } = await stat(runtime.binary)
  const file = [runtime.binary, dev, ino, mtimeMs, size].join(' ')
  const container = `probe-commands-${instanceId}`
  const known = proven.get(file)
  if (known) {
    await removeProbe(paths, runtime, container)
    return { kind: 'works', program: known }
  }
  const probed = await inNamespace(runtime, instanceId, (namespace) =>
    probeControl(paths, runtime, container, namespace),
  )
  if (probed.kind === 'works') proven.set(file, probed.program)
  return probed
}

/** Without that capability the kernel hides what limits another user's processes. */
async function limits(): Promise<string> {
  const mask = /^CapEff:\s+([0-9a-f]+)$/m.exec(await readFile('/proc/self/status', 'utf8'))?.[1] ?? '0'
  const isWhole = (BigInt(`0x${mask}`) & CAP_SYS_RESOURCE) !== 0n
  return isWhole ? '' : ', without CAP_SYS_RESOURCE only of units whose processes are all root’s'
}

function unavailable(name: IsolationClass, detail: string): { capability: ClassCapability } {
  return { capability: { class: name, available: false, detail, memory: { available: false, detail } } }
}

async function versionOf(binary: string, pattern: RegExp): Promise<string | null> {
  const shown = await run(binary, ['--version'], { timeoutMs: PROBE_TIMEOUT_MS }).catch(() => null)
  return shown ? (pattern.exec(shown.stdout)?.[1] ?? null) : null
}

/** `said`: null if it worked, else the error. */
type Tried = { said: string | null; cutsWrites: boolean }

/** How the relay ends that has written much at once, and of which not all was taken. */
const CUT = 3

/** Runs the relay in a container of its own, which writes much at once. */
async function tryContainer(paths: Paths, runtime: Runtime, instanceId: string): Promise<Tried> {
  const container = `probe-${runtime.class}-${instanceId}`
  const bundle = join(paths.runs, container)
  const rootfs = join(bundle, 'rootfs')
  await mkdir(rootfs, { recursive: true, mode: 0o700 })
  try {
    return await inNamespace(runtime, instanceId, async (namespace) => {
      const config = probeConfig(paths, namespace, rootfs, [`/helper/${RELAY}`, 'probe'])
      await writeFile(join(bundle, 'config.json'), JSON.stringify(config), { mode: 0o600 })
      const outcome = await run(
        runtime.launcher,
        [...runtime.globalArgs, 'run', '--bundle', bundle, container],
        { timeoutMs: PROBE_TIMEOUT_MS },
      )
      const cutsWrites = outcome.exitCode === CUT && outcome.stderr.trim() === ''
      if (outcome.exitCode === 0 || cutsWrites) return { said: null, cutsWrites }
      const said = outcome.timedOut ? 'it hung' : outcome.stderr.trim().slice(-300)
      return { said: said || `exit code ${outcome.exitCode}`, cutsWrites }
    })
  } finally {
    await removeProbe(paths, runtime, container)
  }
}

/** A network namespace by path, as machines have: otherwise the fault that masking fixes does not show. */
async function inNamespace<T>(
  runtime: Runtime,
  instanceId: string,
  work: (namespace: string) => Promise<T>,
): Promise<T> {
  const namespace = probeNamespace(runtime, instanceId)
  const ip = (args: string[]) => run('ip', args, { timeoutMs: PROBE_TIMEOUT_MS })
  try {
    await ip(['netns', 'delete', namespace])
    await ip(['netns', 'add', namespace])
    return await work(namespace)
  } finally {
    await ip(['netns', 'delete', namespace])
  }
}
