// Groups within a run's own: one for each of its commands (cgroups.ts).

import { mkdirSync, openSync } from 'node:fs'
import {
  type Cgroups,
  processesBelow,
  groupDirectory,
  subdirectories,
  tryWrite,
  tryRemove,
} from './cgroups.ts'

/** A process that forks meanwhile leaves another one. */
const DISSOLVE_ROUNDS = 20

/** Makes a group below a machine's, only in the main tree: it identifies the processes of one exec. */
export function createChild(cgroups: Cgroups, container: string, child: string): void {
  mkdirSync(groupDirectory(cgroups, cgroups.main, container, child), { recursive: true })
}

/**
 * Opens the list by which a process of one thread enters a group below a machine's, when it writes `0` into it. In version 1
 * that is quick; where another process is moved, the kernel first waits until no process of the host forks or ends.
 */
export function openEntry(cgroups: Cgroups, container: string, child: string): number {
  const list = cgroups.version === 1 ? 'tasks' : 'cgroup.procs'
  return openSync(`${groupDirectory(cgroups, cgroups.main, container, child)}/${list}`, 'w')
}

export function removeChild(cgroups: Cgroups, container: string, child: string): void {
  tryRemove(groupDirectory(cgroups, cgroups.main, container, child))
}

/** Returns the names of the groups below a machine's. */
export function listChildren(cgroups: Cgroups, container: string): string[] {
  return subdirectories(groupDirectory(cgroups, cgroups.main, container))
}

/** Moves the processes of groups below a machine's into its own, and removes those groups. */
export function dissolveChildren(cgroups: Cgroups, container: string): void {
  const directory = groupDirectory(cgroups, cgroups.main, container)
  for (const child of subdirectories(directory)) {
    for (let round = 0; round < DISSOLVE_ROUNDS; round += 1) {
      const pids = processesBelow(`${directory}/${child}`)
      if (pids.length === 0) break
      for (const pid of pids) tryWrite(`${directory}/cgroup.procs`, String(pid))
    }
    tryRemove(`${directory}/${child}`)
  }
}
