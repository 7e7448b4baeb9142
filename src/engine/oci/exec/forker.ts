// Forkers: a process in a machine, started once by the runtime with all the confinement of a command, that makes the
// machine's standbys (standby.ts) from then on, in a millisecond each (decisions/commands.md). What it makes is a child of
// the engine, as what the runtime makes. What runs in it: machine-programs/fork.c.
//
// A machine has at most one for its own user and one for root. It is a process of the unit, which may end or stop it:
// nothing waits for it for long, and nothing that it says is believed but that there is something to look at.

import { Socket } from 'node:net'
import type { EngineContext, Machine } from '../machine/context.ts'
import { removeChild } from '../kernel/cgroup-children.ts'
import { closeFd } from '../kernel/syscalls.ts'
import { createSocketPair, sendWithFds } from '../kernel/unix-sockets.ts'
import { FORK_REQUEST, forkingCommand } from '../machine-programs/fork.ts'
import { reapOrphans } from '../kernel/children.ts'
import { removeFiles, waitingShell } from './command.ts'
import { killExec } from './kill-command.ts'
import { describeAhead, NOTHING_RUNS, untilRunning } from './start-ahead.ts'
import { launchRuntime } from '../runtime/start-exec.ts'
import type { Forker, Placed, StandbyKind } from '../machine/standbys.ts'

/** How long one waits to be asked: an agent that thinks has its next command as quickly. */
const STANDS_MS = 10 * 60_000
/** On this host. Each is a process with 48 kB of its machine's memory. */
const MOST = 256
/** It usually takes a millisecond. One that takes longer is used no more. */
const ANSWERS_WITHIN_MS = 1000
/** The descriptor at which it finds its socket. */
const SOCKET_FD = 3

export function mayMakeForker(host: EngineContext): boolean {
  let count = 0
  for (const { forkers } of host.machines.values()) count += forkers.size
  return count < MOST
}

/** Returns null if the runtime could not start one. */
export async function makeForker(
  host: EngineContext,
  machine: Machine,
  kind: StandbyKind,
): Promise<Forker | null> {
  const args = forkingCommand(waitingShell)
  const { name, generation, start } = await describeAhead(host, machine, kind, args)
  const { driver, paths, files, cgroupChild } = start
  const [ours, its] = createSocketPair()
  const socket = new Socket({ fd: ours })
  const run = driver.execArgs(paths.container, files, { cgroupChild, extraFd: SOCKET_FD })
  const launched = launchRuntime(start, run, [null, null, null, its])
  closeFd(its)
  const running = await untilRunning(start, launched)
  const forker = { name, files, generation, ...(running ?? NOTHING_RUNS), ...talkOver(socket, ours) }
  if (running !== null) return forker
  await removeForker(host, machine, forker)
  return null
}

/** From then on the machine's standbys are made by it, until none has been asked for for a while. */
export function keepForker(host: EngineContext, machine: Machine, kind: StandbyKind, forker: Forker): void {
  const { forkers } = machine
  if (forkers.get(kind) === forker) return
  forkers.set(kind, forker)
  // Its machine has ended, or the unit has ended it.
  void forker.exited.then(() => dropForker(host, machine, kind, forker))
  putOff(host, machine, kind, forker)
}

/** Returns null if the machine has none in its present run. */
export function forkerOf({ forkers, record }: Machine, kind: StandbyKind): Forker | null {
  const forker = forkers.get(kind)
  return forker?.generation === record.generation ? forker : null
}

/** It has been asked: it stands for as long again. */
export function putOff(host: EngineContext, machine: Machine, kind: StandbyKind, forker: Forker): void {
  clearTimeout(forker.expiry)
  forker.expiry = setTimeout(() => dropForker(host, machine, kind, forker), STANDS_MS).unref()
}

/** Removes it, unless that has been done. */
export function dropForker(host: EngineContext, machine: Machine, kind: StandbyKind, forker: Forker): void {
  if (machine.forkers.get(kind) !== forker) return
  machine.forkers.delete(kind)
  removeForker(host, machine, forker).catch((error: unknown) =>
    host.log.warn({ err: error, machine: machine.record.spec.id }, 'a forker was not removed'),
  )
}

/** With what it has made that never entered a group of its own. */
export async function removeForker(host: EngineContext, machine: Machine, forker: Forker): Promise<void> {
  clearTimeout(forker.expiry)
  forker.close()
  await killPlaced(host, machine, forker)
}

/** Kills what is in its group. If that is frozen it ends when it is thawed, or with its machine. */
export async function killPlaced(
  host: EngineContext,
  machine: Machine,
  { name, files, generation }: Omit<Placed, 'expiry'>,
): Promise<void> {
  const paths = host.paths.run(machine.record.spec.id, generation)
  const end = async () =>
    await killExec(host, machine, paths, name, async () => {
      removeChild(host.cgroups, paths.container, name)
      removeFiles(files)
      // Children that have no waiter.
      void reapOrphans()
    })
  if (machine.frozen) machine.onThaw.push(end)
  else await end()
}

function talkOver(socket: Socket, fd: number): Pick<Forker, 'fork' | 'close'> {
  let answered: ((hasForked: boolean) => void) | null = null
  const tell = (hasForked: boolean) => {
    const told = answered
    answered = null
    told?.(hasForked)
  }
  socket.on('error', () => {})
  socket.on('data', ({ length }) => {
    if (answered !== null && length === FORK_REQUEST.length) tell(true)
    // Nothing was asked: nothing that comes here is believed any more.
    else socket.destroy()
  })
  socket.on('close', () => tell(false))
  socket.unref()
  const forkNow: Forker['fork'] = async (entry, descriptors) => {
    if (socket.destroyed || sendWithFds(fd, FORK_REQUEST, [entry, ...descriptors]) === null) return false
    const late = setTimeout(() => socket.destroy(), ANSWERS_WITHIN_MS)
    const hasForked = await new Promise<boolean>((resolve) => (answered = resolve))
    clearTimeout(late)
    return hasForked
  }
  // Each answers for itself, and an answer says nothing of whose it is.
  let before = Promise.resolve(false)
  const fork: Forker['fork'] = (...asked) => (before = before.then(() => forkNow(...asked)))
  return { fork, close: () => void socket.destroy() }
}
