// Kernel counters that all units of class runc share with the host, because there is one per user or one in total,
// and root in such a unit is the host's root for the kernel (decisions/isolation.md). Each is raised so far that exhausting
// it costs more memory, which counts against the unit, than a unit has.

import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type SharedCounter = {
  name: string
  atLeast: number
  isLow: boolean
  /** Whether the engine can raise it: a host may keep its settings read-only. */
  canRaise: boolean
}

/** Zero means no limit here. */
const UNLIMITED = 0

const wanted = {
  'fs.inotify.max_user_instances': 1 << 22,
  'fs.inotify.max_user_watches': 1 << 24,
  'fs.epoll.max_user_watches': 1 << 26,
  'fs.aio-max-nr': 1 << 24,
  'fs.pipe-user-pages-soft': 1 << 24,
  // An idle sandbox of gVisor has some forty threads: at the 32,768 of a small host, 700 of them are the most.
  'kernel.pid_max': 1 << 22,
  // A unit has at most UNIT_PTYS of them.
  'kernel.pty.max': 1 << 18,
}

/** The pseudo-terminals that one unit may have open: the kernel enforces this limit per mount of them. */
export const UNIT_PTYS = 256

/** Raises counters that are too low, and never lowers any. Returns those that are still too low. */
export function raiseSharedCounters(root = '/proc/sys'): string[] {
  for (const { name, atLeast, isLow, canRaise } of readSharedCounters(root)) {
    if (isLow && canRaise) writeFileSync(fileOf(root, name), String(atLeast))
  }
  return readSharedCounters(root).flatMap(({ name, isLow }) => (isLow ? [name] : []))
}

/** Returns the counters that this kernel has. */
export function readSharedCounters(root = '/proc/sys'): SharedCounter[] {
  return Object.entries(wanted).flatMap(([name, atLeast]) => {
    const value = read(fileOf(root, name))
    if (value === null) return []
    const isLow = value < atLeast && !isUnlimited(name, value)
    return [{ name, atLeast, isLow, canRaise: isWritable(fileOf(root, name)) }]
  })
}

function isUnlimited(name: string, value: number): boolean {
  return name === 'fs.pipe-user-pages-soft' && value === UNLIMITED
}

function fileOf(root: string, name: string): string {
  return join(root, ...name.split('.'))
}

function isWritable(file: string): boolean {
  try {
    accessSync(file, constants.W_OK)
    return true
  } catch {
    return false
  }
}

function read(file: string): number | null {
  try {
    return Number(readFileSync(file, 'utf8'))
  } catch {
    return null
  }
}
