// Makes standbys (standby.ts), and ends those that became no command: by the machine's forker where it has one, which
// costs a fork, and otherwise by the runtime.

import { closeSync, fchownSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { EngineContext, Machine } from '../machine/context.ts'
import { processesIn } from '../kernel/cgroups.ts'
import { openEntry, removeChild } from '../kernel/cgroup-children.ts'
import { closeFd, createPipe } from '../kernel/syscalls.ts'
import type { RunPaths } from '../paths.ts'
import { isOurs, waitForChild } from '../kernel/children.ts'
import {
  aheadOf,
  commandGroup,
  filesOf,
  loadProcess,
  newExecName,
  removeFiles,
  waitingShell,
} from './command.ts'
import {
  dropForker,
  forkerOf,
  killPlaced,
  makeForker,
  mayMakeForker,
  putOff,
  removeForker,
} from './forker.ts'
import { killExec } from './kill-command.ts'
import { openReader } from '../kernel/pipes.ts'
import { describeAhead, NOTHING_RUNS, untilRunning } from './start-ahead.ts'
import { destroyReaders, startExec, type StartedExec } from '../runtime/start-exec.ts'
import type { Forker, Standby, StandbyKind } from '../machine/standbys.ts'

/** How long one may take to see that no command comes any more. */
const ENDS_WITHIN_MS = 3000
const SAME_GID = -1

/** Returns null if it could not be made. A new machine's forker is the caller's to keep. */
export async function makeStandby(
  host: EngineContext,
  machine: Machine,
  kind: StandbyKind,
): Promise<Standby | null> {
  const kept = forkerOf(machine, kind)
  if (kept !== null) return await forkStandby(host, machine, kind, kept)
  if (!mayMakeForker(host)) return await startStandby(host, machine, kind)
  const forker = await makeForker(host, machine, kind)
  const standby = forker && (await fork(host, machine, kind, forker))
  if (forker !== null && standby === null) await removeForker(host, machine, forker)
  return standby
}

/** By the machine's forker. Returns null if that failed, and the forker is used no more. */
export async function forkStandby(
  host: EngineContext,
  machine: Machine,
  kind: StandbyKind,
  forker: Forker,
): Promise<Standby | null> {
  putOff(host, machine, kind, forker)
  const standby = await fork(host, machine, kind, forker).catch((error: unknown) => {
    host.log.debug({ err: error, machine: machine.record.spec.id }, 'a forker made no standby')
    return null
  })
  if (standby === null) dropForker(host, machine, kind, forker)
  return standby
}

async function fork(
  host: EngineContext,
  machine: Machine,
  kind: StandbyKind,
  forker: Forker,
): Promise<Standby | null> {
  const { spec, generation } = machine.record
  const paths = host.paths.run(spec.id, generation)
  const name = newExecName()
  const files = filesOf(paths, name)
  const { user } = aheadOf(await loadProcess(machine, paths), kind, [])
  // It says to the next engine that this was begun.
  writeFileSync(files.processFile, '', { mode: 0o600 })
  commandGroup(host, paths, name)
  const entry = openEntry(host.cgroups, paths.container, name)
  const [script, stdout, stderr, stdin] = [createPipe(), createPipe(), createPipe(), createPipe()]
  const ends = [script.readEnd, stdout.writeEnd, stderr.writeEnd, stdin.readEnd] as const
  // As the runtime does: the command may open them again.
  for (const fd of ends) fchownSync(fd, user.uid, SAME_GID)
  const hasForked = await forker.fork(entry, ends)
  closeSync(entry)
  for (const fd of ends) closeFd(fd)
  const pid = hasForked ? onlyProcessIn(host, paths, name) : null
  const running = pid === null ? null : { pid, exited: waitForChild(pid) }
  const started: StartedExec = {
    launcher: null,
    launched: Promise.resolve(0),
    running,
    readers: readersOf(stdout.readEnd, stderr.readEnd),
    inputs: [script.writeEnd, stdin.writeEnd],
  }
  const standby = { name, files, generation, ...(running ?? NOTHING_RUNS), started, forker }
  if (running !== null) return standby
  closeStandby(standby)
  await killPlaced(host, machine, standby)
  return null
}

/** A unit may have ended it, or put others there: then it is of no use. */
function onlyProcessIn(host: EngineContext, { container }: RunPaths, name: string): number | null {
  const [pid, ...others] = processesIn(host.cgroups, container, name)
  return pid !== undefined && others.length === 0 && isOurs(pid) ? pid : null
}

function readersOf(stdoutEnd: number, stderrEnd: number): StartedExec['readers'] {
  const stderr = openReader(stderrEnd)
  return { stdout: openReader(stdoutEnd), stderr, complaints: stderr }
}

async function startStandby(
  host: EngineContext,
  machine: Machine,
  kind: StandbyKind,
): Promise<Standby | null> {
  const { name, generation, start } = await describeAhead(host, machine, kind, waitingShell)
  const started = startExec(start, { hasStdin: true, extraInput: true })
  const running = await untilRunning(start, started)
  const waits = { ...started, running }
  const standby = {
    name,
    files: start.files,
    generation,
    ...(running ?? NOTHING_RUNS),
    started: waits,
    forker: null,
  }
  if (running !== null) return standby
  await removeStandby(host, machine, standby)
  return null
}

/** With its forker, of a machine that is being removed. */
export function closeUnused(standby: Standby): void {
  closeStandby(standby)
  standby.forker?.close()
}

/** Its input ends. */
function closeStandby({ started, expiry }: Standby): void {
  clearTimeout(expiry)
  for (const fd of started.inputs) closeFd(fd)
  destroyReaders(started.readers)
}

/**
 * A standby whose input ends ends by itself, unless its unit keeps it. One that is frozen does so when it is thawed; or it
 * ends with its machine.
 */
export async function removeStandby(host: EngineContext, machine: Machine, standby: Standby): Promise<void> {
  closeStandby(standby)
  const end = () => endOrKill(host, machine, standby)
  if (machine.frozen) machine.onThaw.push(end)
  else await end()
}

async function endOrKill(
  host: EngineContext,
  machine: Machine,
  { name, files, generation, exited }: Standby,
): Promise<void> {
  const paths = host.paths.run(machine.record.spec.id, generation)
  const late = new AbortController()
  const isLate = delay(ENDS_WITHIN_MS, true, { signal: late.signal }).catch(() => true)
  const forget = async () => {
    removeChild(host.cgroups, paths.container, name)
    removeFiles(files)
  }
  if (await Promise.race([exited.then(() => false), isLate]))
    await killExec(host, machine, paths, name, forget)
  else await forget()
  late.abort()
}
