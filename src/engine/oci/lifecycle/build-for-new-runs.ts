// Where the machine has no current gVisor, one is built beside all other work, at idle priority. Units that are there by then
// keep the program they run on; new runs use the built one once it has passed its probe.

import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { run, SAFE_PATH } from '../../../lib/process.ts'
import type { EngineContext } from '../machine/context.ts'
import { BUILT_VERSION } from '../runsc-build/pinned.ts'
import type { BuildSettings } from '../runsc-build/go.ts'
import { chooseDefault } from '../probes/probe.ts'
import { probeGvisor } from '../probes/gvisor.ts'
import { needsBuild } from '../probes/runsc-candidates.ts'

const BUILD_TIMEOUT_MS = 60 * 60_000
/** Another engine of this machine builds it. */
const LOOK_AGAIN_MS = 15_000
const MAIN = join(import.meta.dirname, '../../../../scripts/build-runsc.ts')
/** It ends with the engine, and gets what nothing else wants. */
const idly = ['--pdeathsig', 'KILL', 'chrt', '--idle', '0', 'nice', '-n', '19']

/** `tell`: is given one line for a person, if anything is built. */
export function buildForNewRuns(
  host: EngineContext,
  settings: BuildSettings,
  tell: (line: string) => void,
): { stop: () => Promise<void> } {
  const stopping = new AbortController()
  const { signal } = stopping
  const building = buildAndUse(host, settings, tell, signal).catch((error: unknown) => {
    if (signal.aborted) return
    const why = error instanceof Error ? error.message : String(error)
    host.log.warn(
      { why },
      `runsc ${BUILT_VERSION} could not be built: units of class gvisor use the system's; tried again at the next start`,
    )
  })
  return {
    stop: async () => {
      stopping.abort()
      await building
    },
  }
}

async function buildAndUse(
  host: EngineContext,
  settings: BuildSettings,
  tell: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  if (host.isolation === 'runc' || !(await needsBuild(host.driverOptions))) return
  const beganMs = host.clock.monotonicMs()
  const line = `Building a current gVisor (runsc ${BUILT_VERSION}) at idle priority; new units use it in some minutes, the system's until then`
  tell(line)
  host.log.info(line)
  while (!(await build(settings, signal))) await delay(LOOK_AGAIN_MS, undefined, { signal })
  const probed = await probeGvisor(host.paths, host.instanceId, host.driverOptions)
  if (signal.aborted) return
  await use(host, probed)
  const seconds = Math.round((host.clock.monotonicMs() - beganMs) / 1000)
  host.log.info(
    { seconds, detail: probed.capability.detail },
    'runsc is built: new runs of class gvisor use what this says',
  )
}

/** Returns false if another process builds it. */
async function build(settings: BuildSettings, signal: AbortSignal): Promise<boolean> {
  const said = await run('setpriv', [...idly, process.execPath, MAIN], {
    timeoutMs: BUILD_TIMEOUT_MS,
    env: { PATH: SAFE_PATH, ...settings },
    signal,
  })
  signal.throwIfAborted()
  if (said.exitCode !== 0) throw new Error(said.stderr.trim().slice(-500) || 'the build was ended')
  return said.stdout.trim() !== 'busy'
}

async function use(
  host: EngineContext,
  { capability, driver }: Awaited<ReturnType<typeof probeGvisor>>,
): Promise<void> {
  if (!driver) throw new Error(`what was built is not used: ${capability.detail}`)
  const earlier = host.drivers.get(driver.class)
  // Runs of it go on.
  if (earlier?.program) host.programs.set(earlier.program, earlier)
  host.drivers.set(driver.class, driver)
  const classes = host.capabilities.classes.map((one) => (one.class === driver.class ? capability : one))
  host.capabilities = { ...host.capabilities, classes, ...chooseDefault(classes, host.isolation) }
}
