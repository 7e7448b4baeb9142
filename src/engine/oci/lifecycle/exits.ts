// Detects that a run has ended, and records it: conmon writes the exit code to a file, the kernel counts memory kills
// in our cgroup. The engine uses file notifications and also polls, since a notification can be lost, a dead conmon
// sends none, and the host may run out of them, because units share their number.

import { existsSync, type FSWatcher, readdirSync, watch } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import type { Exit } from '../../engine.ts'
import { killAll, processesIn } from '../kernel/cgroups.ts'
import { judgeDeath, letGoOfParts } from './deaths.ts'
import { hasEnded } from '../kernel/children.ts'
import { statusOf, type EngineContext, type Machine } from '../machine/context.ts'
import { createLogRotation, type LogRotation } from '../logs/rotation.ts'
import { isMonitorAlive } from '../runtime/monitor.ts'
import type { RunPaths } from '../paths.ts'
import { endProcesses } from '../processes/processes.ts'
import { saveRecord } from '../records/record.ts'
import { cleanUpMachine, retry } from '../machine/clean-up-run.ts'

/**
 * A check takes some microseconds per machine, so that hundreds of frozen ones cost next to nothing. More expensive
 * checks run less often, and for active machines.
 */
const CHECK_EVERY_MS = 500
const FULL_CHECK_EVERY = 5
/**
 * How long a monitor may take to write the exit of a run whose processes are gone. On a busy host it takes a second and more,
 * and a shorter wait would take a machine that ended by itself for one that the host killed.
 */
const REPORT_WAIT_MS = 3000
const SIGKILL_CODE = 137

export function watchRuns(host: EngineContext): { close(): void } {
  const bury = (work: Promise<void>) =>
    work.catch((error: unknown) => host.log.error({ err: error }, 'end of a machine could not be handled'))
  const settle = (container: string | null) => {
    const machine = machineOf(host, container ?? '')
    if (machine) void bury(recordEndIfExited(host, machine))
  }
  const rotation = createLogRotation(host)
  let watcher = watchExitFiles(host, settle)
  if (!watcher) host.log.warn('no inotify instance is left: ends of machines are seen half a second late')
  let looks = 0
  const timer = setInterval(() => {
    looks += 1
    if (looks % FULL_CHECK_EVERY === 0) watcher ??= watchExitFiles(host, settle)
    for (const container of readdirSync(host.paths.exits)) settle(container)
    for (const machine of host.machines.values()) {
      if (machine.record.state !== 'running') continue
      const trouble = checkMachine(host, machine, rotation, looks % FULL_CHECK_EVERY === 0)
      if (trouble) void bury(trouble)
    }
  }, CHECK_EVERY_MS)
  return {
    close: () => {
      watcher?.close()
      clearInterval(timer)
    },
  }
}

function machineOf({ machines }: EngineContext, container: string): Machine | undefined {
  return (
    machines.get(container.replace(/-\d+$/, '')) ??
    [...machines.values()].find(({ record }) => record.madeAs === container)
  )
}

/** Returns null if the kernel has no notifications left. */
function watchExitFiles(host: EngineContext, settle: (container: string | null) => void): FSWatcher | null {
  try {
    const watcher = watch(host.paths.exits, (_, name) => settle(name))
    watcher.on('error', (error) =>
      host.log.warn({ err: error }, 'exit files are polled, because file notifications failed'),
    )
    return watcher
  } catch {
    return null
  }
}

/** Returns what to do for a running machine; almost always nothing. */
function checkMachine(
  host: EngineContext,
  machine: Machine,
  rotation: LogRotation,
  closely: boolean,
): Promise<void> | null {
  const { spec, generation, monitor } = machine.record
  // A pid alone may belong to another process by now.
  const watched = monitor !== null && !hasEnded(monitor.pid) && (!closely || isMonitorAlive(monitor))
  if (!watched) return endUnwatched(host, machine)
  if (machine.frozen) return null
  if (closely && !hasProcesses(host, machine)) return endUnreported(host, machine)
  return rotation.rotateIfLarge(spec.id, generation)
}

/** Its monitor died: no one would write its log or learn its exit code, so the run is ended. */
async function endUnwatched(host: EngineContext, machine: Machine): Promise<void> {
  await recordEndIfExited(host, machine)
  if (machine.record.state !== 'running') return
  const { container } = host.paths.run(machine.record.spec.id, machine.record.generation)
  machine.losesProcesses = true
  host.log.warn({ container }, 'a run is ended, because its monitor is gone')
  await killAll(host.cgroups, container)
  await recordKilled(host, machine)
}

/** Its process has ended, but its monitor does not report it. */
async function endUnreported(host: EngineContext, machine: Machine): Promise<void> {
  const { generation } = machine.record
  await host.clock.sleep(REPORT_WAIT_MS)
  await recordEndIfExited(host, machine)
  if (machine.record.state !== 'running' || machine.record.generation !== generation) return
  if (hasProcesses(host, machine)) return
  const { container } = host.paths.run(machine.record.spec.id, generation)
  host.log.warn({ container }, 'a run has ended, and its monitor does not say how')
  await recordKilled(host, machine)
}

function hasProcesses(host: EngineContext, { record }: Machine): boolean {
  const { container } = host.paths.run(record.spec.id, record.generation)
  return processesIn(host.cgroups, container).length > 0
}

/** Records the end of a run that was killed, or that died unobserved: unless it was requested, the host ended it. */
export async function recordKilled(host: EngineContext, machine: Machine): Promise<void> {
  if (machine.record.state !== 'running') return
  const { oomKilled } = judgeDeath(host, machine, SIGKILL_CODE)
  const byHost = !machine.ending && !oomKilled
  recordEnd(host, machine, { code: SIGKILL_CODE, oomKilled, byHost, at: host.clock.now() })
}

/** Records the end of the current run if it has ended. Safe to call at any time, any number of times. */
export async function recordEndIfExited(host: EngineContext, machine: Machine): Promise<void> {
  const { record } = machine
  const { generation } = record
  if (record.state !== 'running') return
  const exit = await readExit(host, machine)
  if (exit && record.state === 'running' && record.generation === generation) recordEnd(host, machine, exit)
}

/** Waits for the end of the machine's run, with a last check. Returns whether it has ended. */
export async function endedWithin(host: EngineContext, machine: Machine, ms: number): Promise<boolean> {
  const abort = new AbortController()
  const ended = machine.ended.then(() => true)
  const late = host.clock.sleep(ms, abort.signal).then(
    () => false,
    () => false,
  )
  const outcome = await Promise.race([ended, late])
  abort.abort()
  if (!outcome) await recordEndIfExited(host, machine)
  return machine.record.state !== 'running'
}

/** Returns the exit that conmon wrote, or null while the run goes on. Call it before the cgroup is removed. */
async function readExit(host: EngineContext, machine: Machine): Promise<Exit | null> {
  const { exit, held } = host.paths.run(machine.record.spec.id, machine.record.generation)
  // It rarely exists, and a wake waits for the answer: a synchronous call is fastest.
  if (!existsSync(exit)) return null
  try {
    const [text, { mtime }] = await Promise.all([readFile(exit, 'utf8'), stat(exit)])
    if (!/^\d+$/.test(text.trim())) return null
    // One that saves itself may end with that, and says 0.
    const hasStood = existsSync(held)
    const code = hasStood ? SIGKILL_CODE : Number(text)
    const death = judgeDeath(host, machine, code)
    return { code, ...death, byHost: hasStood ? !machine.ending : death.byHost, at: mtime }
  } catch {
    return null
  }
}

function recordEnd(host: EngineContext, machine: Machine, exit: Exit): void {
  const { record } = machine
  // The state changes before the first await, so that two callers cannot both record one end.
  Object.assign(record, { state: 'exited', exit })
  letGoOfParts(machine)
  machine.process = null
  machine.frozen = false
  machine.held = false
  machine.onThaw = []
  const paths = host.paths.run(record.spec.id, record.generation)
  machine.cleanup = cleanUp(host, machine, paths)
  machine.markEnded()
  host.events.emit('ended', statusOf(machine))
}

async function cleanUp(host: EngineContext, machine: Machine, paths: RunPaths): Promise<void> {
  const { id } = machine.record.spec
  await endProcesses(host, machine)
  // Its record goes too.
  if (machine.destroySignal.signal.aborted) return await cleanUpMachine(host, machine, paths)
  const save = () => host.effect('engine.exit.record', () => saveRecord(host.paths, machine.record))
  if (await retry(host, id, save)) return await cleanUpMachine(host, machine, paths)
  // The next engine only knows the end from the exit file: it stays until the record is written.
  machine.uncleanedRun = paths
}
