// Standbys: a command's place in a machine, made by the runtime ahead of the command (decision 0136). `runc exec` takes
// many times as long as most programs take to start. So, where commands follow each other, a shell of the helper stands
// ready with the confinement, the control group and the pipes of a command, and waits for a script that makes it the
// next one (standby-script.ts). It is used for one command alone, and is then that command in every respect: what it may
// do, how it is signalled, killed and waited for.
//
// A machine has at most one for its own user and one for root: from the end of a command until none has come for a
// while, and from its first start if it was made ahead (warm-pool). A unit that ends or tampers with one harms its own
// next command alone.

import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { killProcessGroup } from '../../../lib/process.ts'
import { getRuntime, type EngineContext, type Machine } from '../context.ts'
import { removeChild } from '../kernel/cgroups.ts'
import { closeFd } from '../kernel/syscalls.ts'
import { atExpenseOf } from '../kernel/team-groups.ts'
import { execProcess, HELPER, type Process } from '../runtime/bundle.ts'
import { stillRuns, waitForChild } from './children.ts'
import { commandGroup, filesOf, loadProcess, removeFiles } from './command.ts'
import { killExec } from './kill-command.ts'
import { type Attempt, followExec, type Launch, readPid } from './launch.ts'
import { destroyReaders, startExec, type StartedExec } from './start-exec.ts'
import type { Standby, StandbyEntry, StandbyKind } from './standby-state.ts'

/** How long one waits for a command. */
const STANDS_MS = 60_000
/** How long a command waits for one that the runtime is at. */
const AWAITED_MS = 200
/** How long one may take to see that no command comes any more. */
const ENDS_WITHIN_MS = 3000
/** On this host. Each is a process, with some hundred kilobytes of its machine's memory. */
const MOST = 64

/** Has a standby made for the machine's next command, if it may have one. */
export function prepareStandby(host: EngineContext, machine: Machine, kind: StandbyKind): void {
  const { standbys, record } = machine
  const { generation } = record
  if (standbys.has(kind) || !mayHaveStandby(machine, generation) || countStandbys(host) >= MOST) return
  const made = makeStandby(host, machine, kind).catch((error: unknown) => {
    host.log.debug({ err: error, machine: record.spec.id }, 'no standby was made for the next command')
    return null
  })
  addStandby(host, machine, kind, made)
}

/** Keeps a standby for the machine's next command, until none has come for a while. */
export function addStandby(
  host: EngineContext,
  machine: Machine,
  kind: StandbyKind,
  made: Promise<Standby | null>,
): void {
  const { standbys } = machine
  const entry = { made, isAwaited: false }
  standbys.set(kind, entry)
  void made.then((standby) => {
    if (standby) standUntilLate(host, machine, { kind, entry, standby })
    else if (standbys.get(kind) === entry) standbys.delete(kind)
  })
}

/** Returns the machine's standby, which belongs to the caller from then on. Null if there is none that can be used. */
export async function takeStandby(
  host: EngineContext,
  machine: Machine,
  kind: StandbyKind,
  generation: number,
): Promise<Standby | null> {
  const { standbys } = machine
  const entry = standbys.get(kind)
  if (!entry || entry.isAwaited) return null
  entry.isAwaited = true
  // Waiting for one that is being made usually takes no longer than starting another.
  const late = new AbortController()
  const isLate = delay(AWAITED_MS, 'late' as const, { signal: late.signal }).catch(() => 'late' as const)
  const standby = await Promise.race([entry.made, isLate])
  late.abort()
  entry.isAwaited = false
  if (standby === 'late' || standby === null || standbys.get(kind) !== entry) return null
  standbys.delete(kind)
  clearTimeout(standby.expiry)
  const isOfRun = mayHaveStandby(machine, generation) && standby.generation === generation
  if (isOfRun && stillRuns(standby.pid)) return standby
  removeInBackground(host, machine, standby)
  return null
}

/**
 * Ends the standbys of a machine that is about to be frozen and killed: a runtime that is at making one would be frozen
 * with it, and outlive it. Call it once the machine may have no new ones.
 */
export async function endStandbys(host: EngineContext, machine: Machine): Promise<void> {
  const entries = [...machine.standbys.values()]
  machine.standbys.clear()
  await Promise.all(
    entries.map(async ({ made }) => {
      const standby = await made
      if (standby) await remove(host, machine, standby)
    }),
  )
}

/** Makes the standby the command that the script says. */
export function launchStandby({ started }: Standby, script: string, launch: Launch): Attempt {
  const [scriptFd = -1, stdinFd = -1] = started.inputs
  tell(scriptFd, script)
  if (launch.stdin === null) closeFd(stdinFd)
  return followExec(started, launch, stdinFd)
}

/** Never waits in the kernel: a unit may have filled the pipe, and the engine must go on. */
function tell(fd: number, script: string): void {
  const socket = new Socket({ fd, readable: false, writable: true })
  socket.on('error', () => {})
  socket.end(script)
}

/** Of a machine that is being removed, or ends: its input ends. */
export function closeStandby({ started, expiry }: Standby): void {
  clearTimeout(expiry)
  for (const fd of started.inputs) closeFd(fd)
  destroyReaders(started.readers)
}

function mayHaveStandby({ record, ending, frozen, quiesced }: Machine, generation: number): boolean {
  const isRunning = record.state === 'running' && record.generation === generation
  return isRunning && !ending && !frozen && quiesced === null
}

function countStandbys(host: EngineContext): number {
  let count = 0
  for (const { standbys } of host.machines.values()) count += standbys.size
  return count
}

/** Returns null if the runtime could not make one. */
export async function makeStandby(
  host: EngineContext,
  machine: Machine,
  kind: StandbyKind,
): Promise<Standby | null> {
  const { spec, generation } = machine.record
  const paths = host.paths.run(spec.id, generation)
  const name = `exec-${randomBytes(6).toString('hex')}`
  const files = filesOf(paths, name)
  const described = describe(await loadProcess(machine, paths), kind)
  await writeFile(files.processFile, JSON.stringify(described), { mode: 0o600 })
  const runtime = getRuntime(host, spec.isolation)
  const charge = atExpenseOf(host.cgroups, spec.networkGroup)
  const cgroupChild = commandGroup(host, paths, name)
  const started = startExec(
    { runtime, charge, paths, files, cgroupChild, launching: machine.launching },
    { hasStdin: true, extraInput: true },
  )
  const code = await launchedWithin(started, runtime.deadlineMs)
  const pid = code === 0 ? readPid(files.pidFile) : null
  const exited = pid === null ? Promise.resolve(null) : waitForChild(pid)
  const standby = { name, files, generation, pid: pid ?? 0, started: { ...started, exited }, exited }
  if (pid !== null) return standby
  await remove(host, machine, standby)
  return null
}

/** Returns the runtime's exit code; null if it failed or hung, which ends it. */
async function launchedWithin(
  { launcher, launched }: StartedExec,
  timeoutMs: number,
): Promise<number | null> {
  const timer = setTimeout(() => {
    if (launcher.pid !== undefined) killProcessGroup(launcher.pid)
  }, timeoutMs)
  const code = await launched.catch(() => null)
  clearTimeout(timer)
  return code
}

/** The script brings the command's environment and directory. */
function describe(main: Process, kind: StandbyKind): Process {
  const args = [HELPER, 'sh', '-s']
  const env = main.env.filter((entry) => entry.startsWith('HOME='))
  return { ...execProcess(main, args, { asRoot: kind === 'root' }), env, cwd: '/' }
}

function standUntilLate(
  host: EngineContext,
  machine: Machine,
  { kind, entry, standby }: { kind: StandbyKind; entry: StandbyEntry; standby: Standby },
): void {
  const { standbys } = machine
  const end = () => {
    if (standbys.get(kind) !== entry) return
    standbys.delete(kind)
    removeInBackground(host, machine, standby)
  }
  standby.expiry = setTimeout(end, STANDS_MS).unref()
  // Its machine has ended, or the unit has ended it.
  void standby.exited.then(end)
}

function removeInBackground(host: EngineContext, machine: Machine, standby: Standby): void {
  remove(host, machine, standby).catch((error: unknown) =>
    host.log.warn({ err: error, machine: machine.record.spec.id }, 'a standby was not removed'),
  )
}

/**
 * A standby whose input ends ends by itself, unless its unit keeps it. One that is frozen does so when it is thawed; or it
 * ends with its machine.
 */
async function remove(host: EngineContext, machine: Machine, standby: Standby): Promise<void> {
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
    await removeFiles(files)
  }
  if (await Promise.race([exited.then(() => false), isLate]))
    await killExec(host, machine, paths, name, forget)
  else await forget()
  late.abort()
}
