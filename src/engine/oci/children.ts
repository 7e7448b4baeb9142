// Ends of processes that are ours but not Node's: detached execs and monitors, which become our children
// when what started them leaves (the engine is a subreaper). Node waits only for what it spawned itself.

import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { tryWait } from './syscalls.ts'

type Waiting = { resolve: (code: number | null) => void; poll: NodeJS.Timeout }

const POLL_MS = 50

const waiting = new Map<number, Waiting>()
let listening = false

/** Resolves with the exit code (128 + n for signal n); null when it is no child of ours, or no longer. */
export function waitForChild(pid: number): Promise<number | null> {
  if (!listening) {
    process.on('SIGCHLD', lookAtAll)
    listening = true
  }
  return new Promise((resolve) => {
    // A process reparents a moment after its parent left, without a signal to us: hence the poll beside it.
    waiting.set(pid, { resolve, poll: setInterval(() => look(pid), POLL_MS) })
    look(pid)
  })
}

/** Whether a process has ended, ours or another's; ours is buried. Costs a system call or two. */
export function hasEnded(pid: number): boolean {
  const { kind } = tryWait(pid)
  return kind === 'ended' || (kind === 'not-ours' && !isAlive(pid))
}

function lookAtAll(): void {
  for (const pid of waiting.keys()) look(pid)
}

function look(pid: number): void {
  const entry = waiting.get(pid)
  if (!entry) return
  const outcome = tryWait(pid)
  if (outcome.kind === 'running') return
  if (outcome.kind === 'not-ours' && isAlive(pid)) return
  waiting.delete(pid)
  clearInterval(entry.poll)
  entry.resolve(outcome.kind === 'ended' ? outcome.code : null)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

let reaping: Promise<void> | null = null

/**
 * Buries the ended processes that came to us when their parent left (conmon, gofers) and that nobody waits
 * for. Node buries its own children at the next turn of its loop, so a zombie seen in two turns is not one.
 */
export function reapOrphans(): Promise<void> {
  reaping ??= (async () => {
    await delay(POLL_MS)
    const first = zombieChildren()
    await delay(POLL_MS)
    for (const pid of zombieChildren()) {
      if (first.has(pid) && !waiting.has(pid)) tryWait(pid)
    }
  })().finally(() => {
    reaping = null
  })
  return reaping
}

function zombieChildren(): Set<number> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return new Set(pids.map(Number).filter(isZombieOfOurs))
}

function isZombieOfOurs(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return state === 'Z' && Number(parent) === process.pid
  } catch {
    return false
  }
}
