// Control groups of teams (decisions/processor.md). A team's machines, and the service's work for them, compete with those
// of other teams as one group, however many there are. All teams together yield to the service.

import { mkdirSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { type Cgroups, LOGS, teamGroup, tryRead, tryWrite, WORK } from './cgroups.ts'

/** In the unit of version 1: the default weight of a group. */
export const FULL_WEIGHT = 1024
/**
 * Of all machines together, beside the full weight of the service's own group. While no other process needs the processors
 * they have all of them.
 */
const MACHINES_WEIGHT = 512
/** The same in the unit of version 2. */
const FULL_WEIGHT_V2 = 100
const CONTROLLERS = ['cpu', 'cpuset', 'io', 'memory', 'pids']
/** The controllers of a process of ours. Its memory and its freezing stay with the service. */
const WORK_CONTROLLERS = ['cpu', 'cpuacct']

/** Before the runtime makes a group of a run in it. Repeating it changes nothing. */
export function prepareTeam(cgroups: Cgroups, team: number): void {
  const name = teamGroup(team)
  for (const directory of workDirectories(cgroups, name, WORK)) mkdirSync(directory, { recursive: true })
  // Version 2: a group has its own share of what its parent hands out alone.
  if (cgroups.version === 2) {
    const parent = `${cgroups.main}/${cgroups.parent}`
    for (const directory of [cgroups.main, parent, `${parent}/${name}`])
      for (const controller of CONTROLLERS) tryWrite(`${directory}/cgroup.subtree_control`, `+${controller}`)
  }
  writeWeight(cgroups, cgroups.parent, MACHINES_WEIGHT)
}

/**
 * Of each period, all conmons of a team in `logs` together may run so long: a quarter of one processor. The period is
 * short, so that others wait no longer than that for a processor (decisions/processor.md).
 */
const LOGS_QUOTA_US = 5000
const LOGS_PERIOD_US = 20_000

/**
 * Moves a conmon into the team's `logs`, which has a quota. Within `work`, weights would do, but Linux 6.18 lets a
 * group that wakes some ten thousand times a second run for seconds while heavier ones wait.
 */
export async function limitLogWriter(cgroups: Cgroups, team: number, pid: number): Promise<void> {
  const quota: [string, string][] =
    cgroups.version === 2
      ? [['cpu.max', `${LOGS_QUOTA_US} ${LOGS_PERIOD_US}`]]
      : [
          ['cpu.cfs_period_us', String(LOGS_PERIOD_US)],
          ['cpu.cfs_quota_us', String(LOGS_QUOTA_US)],
        ]
  for (const directory of workDirectories(cgroups, teamGroup(team), LOGS)) {
    await mkdir(directory, { recursive: true })
    // Only the tree of the controller has these files.
    for (const [file, text] of quota)
      await writeFile(`${directory}/${file}`, text, { flag: 'r+' }).catch(() => {})
    await writeFile(`${directory}/cgroup.procs`, String(pid))
  }
}

/** A weight of version 1's unit, from 2 to 262144. */
export function setTeamWeight(cgroups: Cgroups, team: string, weight: number): void {
  writeWeight(cgroups, `${cgroups.parent}/${team}`, weight)
}

/** Microseconds of processor time that a team has used since its group was made; null where that cannot be read. */
export function cpuTimeOfTeam(cgroups: Cgroups, team: string): number | null {
  if (cgroups.version === 2) {
    const stat = tryRead(`${cgroups.main}/${cgroups.parent}/${team}/cpu.stat`)
    const used = /^usage_usec (\d+)$/m.exec(stat)?.[1]
    return used === undefined ? null : Number(used)
  }
  const used = tryRead(`${cgroups.trees['cpuacct'] ?? ''}/${cgroups.parent}/${team}/cpuacct.usage`).trim()
  return used === '' ? null : Number(used) / 1000
}

/** Wraps a command line so that it runs in the control group of a team. */
export type Charge = (command: string, args: string[]) => [string, string[]]

/** At the service's own. */
export const unchanged: Charge = (command, args) => [command, args]

/** Moves its own shell into the groups, then becomes the program. It starts the program also if a group no longer exists. */
const ENTER = 'while [ "$1" != -- ]; do { echo 0 >"$1"; } 2>/dev/null; shift; done; shift; exec "$@"'

/** For programs of ours that work for a team outside its machines. */
export function atExpenseOf(cgroups: Cgroups, team: number): Charge {
  const files = workDirectories(cgroups, teamGroup(team), WORK).map(
    (directory) => `${directory}/cgroup.procs`,
  )
  return (command, args) => ['/bin/sh', ['-c', ENTER, 'sh', ...files, '--', command, ...args]]
}

function workDirectories(cgroups: Cgroups, team: string, group: string): string[] {
  const trees =
    cgroups.version === 2 ? [cgroups.main] : WORK_CONTROLLERS.flatMap((name) => cgroups.trees[name] ?? [])
  return trees.map((tree) => `${tree}/${cgroups.parent}/${team}/${group}`)
}

function writeWeight(cgroups: Cgroups, group: string, weight: number): void {
  const [file, text] =
    cgroups.version === 2
      ? [
          `${cgroups.main}/${group}/cpu.weight`,
          Math.max(1, Math.round((weight * FULL_WEIGHT_V2) / FULL_WEIGHT)),
        ]
      : [`${cgroups.trees['cpu'] ?? ''}/${group}/cpu.shares`, Math.round(weight)]
  tryWrite(file, String(text))
}
