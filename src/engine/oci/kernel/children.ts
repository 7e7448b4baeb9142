// Waits for processes that are our children but not started by Node: programs that the engine spawns (programs.ts), and
// detached execs and monitors, which become our children when their parent exits (the engine is a subreaper). Node only
// waits for processes that it spawned.

import { setTimeout as delay } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'
import { peekEndedChild, tryWait, type EndOfChild } from './syscalls.ts'

type Waiting = {
  resolve: (end: EndOfChild | null) => void
  poll: NodeJS.Timeout | undefined
  isOurs: boolean
  /** It may have ended, but is not reaped yet. */
  isKept: boolean
}

const SIGNALLED = 128
const POLL_MS = 50
/** Of a child, whose end a signal tells the main thread, and no other. */
const POLL_CHILD_MS = isMainThread ? 2000 : 10

const waiting = new Map<number, Waiting>()
let listening = false

/** Resolves with the exit code (128 + n for signal n); null if it is not, or no longer, our child. */
export async function waitForChild(pid: number): Promise<number | null> {
  const end = await followChild(pid).ended
  return end && (end.signal === 0 ? end.code : SIGNALLED + end.signal)
}

/**
 * The same with the signal itself. Until `isReaped`, nothing else has its number, nor that of its process group; it is
 * reaped only after `until`.
 */
export function followChild(
  pid: number,
  until?: Promise<unknown>,
): { ended: Promise<EndOfChild | null>; isReaped: () => boolean } {
  if (!listening) {
    process.on('SIGCHLD', lookAtAll)
    listening = true
  }
  const { promise: ended, resolve } = Promise.withResolvers<EndOfChild | null>()
  const entry: Waiting = { resolve, poll: undefined, isOurs: false, isKept: until !== undefined }
  waiting.set(pid, entry)
  const begin = () => {
    entry.isKept = false
    // A process is reparented a moment after its parent exits, without a signal to us: hence the poll.
    entry.poll = setInterval(() => look(pid), POLL_MS)
    look(pid)
  }
  if (until === undefined) begin()
  else void until.then(begin)
  return { ended, isReaped: () => waiting.get(pid) !== entry }
}

/** Whether a process has ended; a child of ours is reaped. Costs a system call or two. */
export function hasEnded(pid: number): boolean {
  const { kind } = tryWait(pid)
  return kind === 'ended' || (kind === 'not-ours' && !isAlive(pid))
}

/** Whether it is a child of ours that has not ended, so that nothing else has its number until we wait for it. */
export function isOurs(pid: number): boolean {
  return tryWait(pid).kind === 'running'
}

function lookAtAll(): void {
  for (const pid of waiting.keys()) look(pid)
}

function look(pid: number): void {
  const entry = waiting.get(pid)
  if (!entry || entry.isKept) return
  const outcome = tryWait(pid)
  if (outcome.kind === 'running') {
    if (entry.isOurs) return
    entry.isOurs = true
    clearInterval(entry.poll)
    entry.poll = setInterval(() => look(pid), POLL_CHILD_MS).unref()
    return
  }
  if (outcome.kind === 'not-ours' && isAlive(pid)) return
  waiting.delete(pid)
  clearInterval(entry.poll)
  entry.resolve(outcome.kind === 'ended' ? outcome.end : null)
}

/** Whether a process that is waited for has not ended, as of now. */
export function stillRuns(pid: number): boolean {
  look(pid)
  return waiting.has(pid)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const ORPHANS_COME_FOR_MS = 500
const TURN_MS = 10

let reaping = false
let reapUntilMs = 0

/**
 * Reaps ended processes that become our children when their parent exits (conmon, gofers, their children), now or in
 * a moment. Node reaps its own children in the next turn of its loop, so one that is still there after that is not
 * Node's.
 */
export async function reapOrphans(): Promise<void> {
  reapUntilMs = performance.now() + ORPHANS_COME_FOR_MS
  if (reaping) return
  reaping = true
  let seen: number | null = null
  while (seen !== null || performance.now() < reapUntilMs) {
    const ended = peekEndedChild()
    if (ended !== null && ended === seen) bury(ended)
    seen = ended
    await delay(ended === null ? POLL_MS : TURN_MS)
  }
  reaping = false
}

function bury(pid: number): void {
  if (waiting.has(pid)) look(pid)
  else tryWait(pid)
}
