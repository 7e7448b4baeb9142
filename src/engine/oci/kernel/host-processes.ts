// What processes of the host are called. One of a machine can have any name, and is told apart by its namespace.

import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'

/** The pids of all processes. */
export function allPids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

/** The name of a process and its arguments; empty if it is gone. */
export function commandOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  } catch {
    return []
  }
}

/** Whether a process is of the engine's own namespace and user. */
export function isOfHost(pid: number): boolean {
  try {
    const namespace = (of: number | 'self') => readlinkSync(`/proc/${of}/ns/pid`)
    return namespace(pid) === namespace('self') && statSync(`/proc/${pid}`).uid === process.getuid?.()
  } catch {
    return false
  }
}
