// Standbys: a command's place in a machine, made ahead of the command (decisions/commands.md). `runc exec` takes many times
// as long as most programs take to start. So, where commands follow each other, a shell of the helper stands ready with the
// confinement, the control group and the pipes of a command, and waits for a script that makes it the next one
// (standby-script.ts). It is used for one command alone, and is then that command in every respect: what it may do, how it
// is signalled, killed and waited for.
//
// A machine has at most one for its own user and one for root: from the end of a command until none has come for a
// while, and from its first start if it was made ahead (warm-pool). The others of several commands at once, and one that
// comes later, have theirs made as they come (forker.ts). A unit that ends or tampers with one harms its own next command
// alone.

import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { EngineContext, Machine } from '../machine/context.ts'
import { closeFd } from '../kernel/syscalls.ts'
import { stillRuns } from '../kernel/children.ts'
import { forkerOf, keepForker, removeForker } from './forker.ts'
import { trackLaunch } from '../runtime/launching.ts'
import type { Attempt } from '../runtime/attempt.ts'
import { followExec, type Launch } from './launch.ts'
import { forkStandby, makeStandby, removeStandby } from './make-standby.ts'
import type { Standby, StandbyEntry, StandbyKind } from '../machine/standbys.ts'

/** How long one waits for a command. */
const STANDS_MS = 60_000
/** How long a command waits for one that is being made. */
const AWAITED_MS = 200
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
  trackLaunch(machine.launching, made)
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
    if (standby?.forker) keepForker(host, machine, kind, standby.forker)
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
  if (!entry || entry.isAwaited) return await takeAnother(host, machine, kind, generation)
  entry.isAwaited = true
  // Waiting for one that is being made usually takes no longer than starting another.
  const standby = await madeInTime(entry.made)
  entry.isAwaited = false
  if (standby === 'late' || standby === null || standbys.get(kind) !== entry) return null
  standbys.delete(kind)
  clearTimeout(standby.expiry)
  return usable(host, machine, standby, generation)
}

/** Returns one that is made for the caller. */
async function takeAnother(
  host: EngineContext,
  machine: Machine,
  kind: StandbyKind,
  generation: number,
): Promise<Standby | null> {
  const forker = forkerOf(machine, kind)
  if (forker === null || !mayHaveStandby(machine, generation)) return null
  const made = forkStandby(host, machine, kind, forker)
  trackLaunch(machine.launching, made)
  const standby = await madeInTime(made)
  if (standby !== 'late') return standby && usable(host, machine, standby, generation)
  void made.then((late) => late && removeInBackground(host, machine, late))
  return null
}

async function madeInTime(made: Promise<Standby | null>): Promise<Standby | null | 'late'> {
  const inTime = new AbortController()
  const late = delay(AWAITED_MS, 'late' as const, { signal: inTime.signal }).catch(() => 'late' as const)
  const standby = await Promise.race([made, late])
  inTime.abort()
  return standby
}

/** Returns null if its run has ended meanwhile, or its unit has ended it. */
function usable(host: EngineContext, machine: Machine, standby: Standby, generation: number): Standby | null {
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
      if (standby) await removeStandby(host, machine, standby)
    }),
  )
  const forkers = [...machine.forkers.values()]
  machine.forkers.clear()
  await Promise.all(forkers.map((forker) => removeForker(host, machine, forker)))
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

function mayHaveStandby({ record, ending, frozen, quiesced }: Machine, generation: number): boolean {
  const isRunning = record.state === 'running' && record.generation === generation
  return isRunning && !ending && !frozen && quiesced === null
}

function countStandbys(host: EngineContext): number {
  let count = 0
  for (const { standbys } of host.machines.values()) count += standbys.size
  return count
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
  removeStandby(host, machine, standby).catch((error: unknown) =>
    host.log.warn({ err: error, machine: machine.record.spec.id }, 'a standby was not removed'),
  )
}
