// What the probes of all classes share: a container that writes, in a network namespace of its own.

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunResult } from '../../../lib/process.ts'
import type { ClassCapability, IsolationClass } from '../../engine.ts'
import { removeProbe } from './control.ts'
import { run } from '../kernel/programs.ts'
import type { Paths } from '../paths.ts'
import { RELAY } from '../machine-programs/relay.ts'
import type { CapabilitySets } from '../runtime/capabilities.ts'
import type { Driver } from '../runtime/driver.ts'
import { probeConfig, probeNamespace } from './bundle.ts'

export const PROBE_TIMEOUT_MS = 20_000

export type ProbedClass = { capability: ClassCapability; driver?: Driver }

export function unavailable(name: IsolationClass, detail: string): ProbedClass {
  return { capability: { class: name, available: false, detail, memory: { available: false, detail } } }
}

export async function versionOf(binary: string, pattern: RegExp): Promise<string | null> {
  const shown = await run(binary, ['--version'], { timeoutMs: PROBE_TIMEOUT_MS }).catch(() => null)
  return shown ? (pattern.exec(shown.stdout)?.[1] ?? null) : null
}

/** `said`: null if it worked, else the error. */
export type Tried = { said: string | null; cutsWrites: boolean }

/** How the relay ends that has written much at once, and of which not all was taken. */
const CUT = 3

/** Runs the relay in a container of its own, which writes much at once. */
export async function tryContainer(paths: Paths, driver: Driver, instanceId: string): Promise<Tried> {
  const asked = { name: driver.class, args: [`/helper/${RELAY}`, 'probe'] }
  const outcome = await runProbe(paths, driver, instanceId, asked)
  const cutsWrites = outcome.exitCode === CUT && outcome.stderr.trim() === ''
  if (outcome.exitCode === 0 || cutsWrites) return { said: null, cutsWrites }
  const said = outcome.timedOut ? 'it hung' : outcome.stderr.trim().slice(-300)
  return { said: said || `exit code ${outcome.exitCode}`, cutsWrites }
}

type Asked = { name: string; args: string[]; capabilities?: CapabilitySets; timeoutMs?: number }

/** Runs a command in a container of its own, in a network namespace of its own, to its end. `ms`: how long that took. */
export async function runProbe(
  paths: Paths,
  driver: Driver,
  instanceId: string,
  { name, args, capabilities, timeoutMs = PROBE_TIMEOUT_MS }: Asked,
): Promise<RunResult & { ms: number }> {
  const container = `probe-${name}-${instanceId}`
  const bundle = join(paths.runs, container)
  const rootfs = join(bundle, 'rootfs')
  await mkdir(rootfs, { recursive: true, mode: 0o700 })
  try {
    return await inNamespace(driver, instanceId, async (namespace) => {
      const config = probeConfig(paths, namespace, rootfs, args)
      const process = { ...config.process, ...(capabilities && { capabilities }) }
      await writeFile(join(bundle, 'config.json'), JSON.stringify({ ...config, process }), { mode: 0o600 })
      const began = performance.now()
      const command = [...driver.globalArgs, 'run', '--bundle', bundle, container]
      const outcome = await run(driver.launcher, command, { timeoutMs })
      return { ...outcome, ms: performance.now() - began }
    })
  } finally {
    await removeProbe(paths, driver, container)
  }
}

/** A network namespace by path, as machines have: otherwise the fault that masking fixes does not show. */
export async function inNamespace<T>(
  driver: Driver,
  instanceId: string,
  work: (namespace: string) => Promise<T>,
): Promise<T> {
  const namespace = probeNamespace(driver, instanceId)
  const ip = (args: string[]) => run('ip', args, { timeoutMs: PROBE_TIMEOUT_MS })
  try {
    await ip(['netns', 'delete', namespace])
    await ip(['netns', 'add', namespace])
    return await work(namespace)
  } finally {
    await ip(['netns', 'delete', namespace])
  }
}
