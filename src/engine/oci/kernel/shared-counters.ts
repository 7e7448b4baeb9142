// Counters of the kernel that all units of class runc share with the host: there is one for a user, or one in all, and
// root in such a unit is the host's root to the kernel (decision 0067). Each is raised so far that what a unit would
// have to take of it costs more memory, which is counted as the unit's, than a unit has.

import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type ConcurrencyLimitdCounter = {
  name: string
  atLeast: number
  isLow: boolean
  /** Whether the engine can raise it: a host may keep its settings read-only. */
  canRaise: boolean
}

/** Zero means no limit here, in the kernel's words. */
const UNLIMITED = 0

const wanted = {
  'fs.inotify.max_user_instances': 1 << 22,
  'fs.inotify.max_user_watches': 1 << 24,
  'fs.epoll.max_user_watches': 1 << 26,
  'fs.aio-max-nr': 1 << 24,
  'fs.pipe-user-pages-soft': 1 << 24,
  // A unit has at most UNIT_PTYS of them.
  'kernel.pty.max': 1 << 18,
}

/** Pseudo-terminals one unit may have open: the kernel keeps this limit for each mount of them. */
export const UNIT_PTYS = 256

/** Raises what is lower and never lowers anything. Says which are low all the same. */
export function raiseSharedCounters(root = '/proc/sys'): string[] {
  for (const { name, atLeast, isLow, canRaise } of readSharedCounters(root)) {
    if (isLow && canRaise) writeFileSync(fileOf(root, name), String(atLeast))
  }
  return readSharedCounters(root).flatMap(({ name, isLow }) => (isLow ? [name] : []))
}

/** Those that this kernel has. */
export function readSharedCounters(root = '/proc/sys'): ConcurrencyLimitdCounter[] {
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
