// Control groups of machines, in both versions. Version 2 is one tree; version 1 (also in its hybrid form) is one tree
// per controller, with the same path in each. Our parent is a root-level group named after the instance, so that ending
// a login session does not end machines (design 3). Below it each team has a group (team-groups.ts) that contains the
// groups of its runs; runs that an earlier release started are in the parent itself.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

export type Cgroups = {
  version: 1 | 2
  /** Version 2: the one tree. Version 1: every tree, by controller. */
  trees: Record<string, string>
  /** The tree used for membership and freezing. */
  main: string
  /** The group that contains all groups of this instance, relative to a tree. */
  parent: string
  /** Where the groups of runs lie, relative to the parent, as far as it is known. */
  places: Map<string, string>
}

const ROOT = '/sys/fs/cgroup'
/** Runs have other names: they are named after their unit. */
const TEAM = /^team-\d+$/
/** In a team's group, beside those of its runs: processes that work for the team outside its machines. */
export const WORK = 'work'
/** Beside it: those of them that write what machines print at full speed. */
export const LOGS = 'logs'
/** The groups in a team's group that are not those of its runs. */
export const workGroups: readonly string[] = [WORK, LOGS]

/** Each pause is a millisecond longer: a second in total. */
const FREEZE_ROUNDS = 45
const FREEZE_ANEW_EVERY = 5
const KILL_ROUNDS = 60
const KILL_PAUSE_MS = 20
/** Five seconds: on a busy host a process takes that long to end. */
const REMOVE_ROUNDS = 250

export function openCgroups(instanceId: string, root = ROOT): Cgroups {
  const parent = `berth-${instanceId}`
  if (existsSync(`${root}/cgroup.controllers`)) {
    return { version: 2, trees: { unified: root }, main: root, parent, places: new Map() }
  }
  const names = readdirSync(root).filter((name) => existsSync(`${root}/${name}/cgroup.procs`))
  const trees = Object.fromEntries(names.map((name) => [name, `${root}/${name}`]))
  const main = trees['freezer']
  if (!main) throw new Error(`${root} has no freezer controller: Berth cannot stop machines without it`)
  return { version: 1, trees, main, parent, places: new Map() }
}

export function teamGroup(team: number): string {
  return `team-${team}`
}

/** Puts the run's group into that of its team. Call it before the runtime is given the path (`cgroupPath`). */
export function placeInTeam(cgroups: Cgroups, container: string, team: number): void {
  cgroups.places.set(container, `${teamGroup(team)}/${container}`)
}

/** The path for the runtime: absolute in each tree. */
export function cgroupPath(cgroups: Cgroups, container: string): string {
  return `/${cgroups.parent}/${placeOf(cgroups, container)}`
}

/** Returns the host process ids in a group and the groups below it. */
export function processesIn(cgroups: Cgroups, container: string, child?: string): number[] {
  return processesBelow(groupDirectory(cgroups, cgroups.main, container, child))
}

/** Kills everything in a group and the groups below it. Returns true if nothing is left. */
export async function killAll(cgroups: Cgroups, container: string, child?: string): Promise<boolean> {
  const directory = groupDirectory(cgroups, cgroups.main, container, child)
  for (let round = 0; round < KILL_ROUNDS; round += 1) {
    if (processesBelow(directory).length === 0) return true
    if (cgroups.version === 2) tryWrite(`${directory}/cgroup.kill`, '1')
    else killFrozen(directory)
    // Killed processes are usually gone within a millisecond or two.
    await delay(Math.min(round + 1, KILL_PAUSE_MS))
  }
  return processesBelow(directory).length === 0
}

/**
 * Freezes every process of a group. Returns false if that takes too long: some may be frozen, some not. Version 1
 * sometimes misses a process that has just joined, forked or been thawed, and then never finishes by itself: asking
 * again, and sometimes thawing first, helps.
 */
export async function freezeGroup(cgroups: Cgroups, container: string): Promise<boolean> {
  const directory = groupDirectory(cgroups, cgroups.main, container)
  for (let round = 1; round <= FREEZE_ROUNDS; round += 1) {
    if (cgroups.version === 1 && round % FREEZE_ANEW_EVERY === 0) setFrozen(cgroups, directory, false)
    setFrozen(cgroups, directory, true)
    if (isFrozen(cgroups, container)) return true
    await delay(round)
  }
  return isFrozen(cgroups, container)
}

export function thawGroup(cgroups: Cgroups, container: string): void {
  setFrozen(cgroups, groupDirectory(cgroups, cgroups.main, container), false)
}

/**
 * Sets the CPU time in each period; the period is the runtime's (runtime/bundle.ts). What a group has not used of a period it may
 * use in a later one, as much again at most (decisions/processor.md).
 */
export function setCpuQuota(cgroups: Cgroups, container: string, quotaUs: number): void {
  const [tree, quota, burst] =
    cgroups.version === 2
      ? [cgroups.main, 'cpu.max', 'cpu.max.burst']
      : [cgroups.trees['cpu'], 'cpu.cfs_quota_us', 'cpu.cfs_burst_us']
  if (tree === undefined) return
  const directory = groupDirectory(cgroups, tree, container)
  // The kernel takes no burst above the quota: of a smaller quota, the burst comes first.
  tryWrite(`${directory}/${burst}`, '0')
  tryWrite(`${directory}/${quota}`, `${quotaUs}`)
  tryWrite(`${directory}/${burst}`, `${quotaUs}`)
}

/**
 * Limits the socket buffers in bytes. Version 1 counts them separately, without a limit by default, and only those of
 * sockets created after the limit: so set it before the runtime makes the group. Version 2 counts them as memory.
 */
export function limitSocketBuffers(cgroups: Cgroups, container: string, bytes: number): void {
  const tree = cgroups.trees['memory']
  if (cgroups.version === 2 || !tree) return
  const directory = groupDirectory(cgroups, tree, container)
  mkdirSync(directory, { recursive: true })
  tryWrite(`${directory}/memory.kmem.tcp.limit_in_bytes`, String(bytes))
}

/** Whether the whole group is frozen. */
export function isFrozen(cgroups: Cgroups, container: string): boolean {
  const directory = groupDirectory(cgroups, cgroups.main, container)
  if (cgroups.version === 2) return /^frozen 1$/m.test(tryRead(`${directory}/cgroup.events`))
  return tryRead(`${directory}/freezer.state`).trim() === 'FROZEN'
}

function setFrozen(cgroups: Cgroups, directory: string, frozen: boolean): void {
  if (cgroups.version === 2) tryWrite(`${directory}/cgroup.freeze`, frozen ? '1' : '0')
  else tryWrite(`${directory}/freezer.state`, frozen ? 'FROZEN' : 'THAWED')
}

/** Removes a machine's groups from every tree; groups that still hold a process stay. */
export function removeCgroup(cgroups: Cgroups, container: string): void {
  for (const tree of Object.values(cgroups.trees)) {
    const directory = groupDirectory(cgroups, tree, container)
    for (const child of subdirectories(directory)) tryRemove(`${directory}/${child}`)
    tryRemove(directory)
  }
  cgroups.places.delete(container)
}

/** Removes a group at the root of every tree, where runtimes make those of containers for which none was named. */
export function removeRootGroup(name: string, root = ROOT): void {
  for (const tree of [root, ...subdirectories(root).map((controller) => `${root}/${controller}`)])
    tryRemove(`${tree}/${name}`)
}

/** Returns the names of the groups of all runs of this instance, from every tree. */
export function listCgroups(cgroups: Cgroups): string[] {
  const teams = listTeams(cgroups)
  const all = Object.values(cgroups.trees).flatMap((tree) => {
    const parent = `${tree}/${cgroups.parent}`
    const below = teams.flatMap((team) => subdirectories(`${parent}/${team}`))
    return [...subdirectories(parent), ...below].filter(
      (name) => !TEAM.test(name) && !workGroups.includes(name),
    )
  })
  return [...new Set(all)]
}

/** Returns the names of the groups of teams, from every tree. */
export function listTeams(cgroups: Cgroups): string[] {
  const all = Object.values(cgroups.trees).flatMap((tree) => subdirectories(`${tree}/${cgroups.parent}`))
  return [...new Set(all)].filter((name) => TEAM.test(name))
}

/** Removes a team's group, unless it still contains a run. */
export function removeTeam(cgroups: Cgroups, team: string): void {
  for (const tree of Object.values(cgroups.trees)) {
    const directory = `${tree}/${cgroups.parent}/${team}`
    if (containsRun(directory)) continue
    for (const name of workGroups) tryRemove(`${directory}/${name}`)
    tryRemove(directory)
  }
}

function containsRun(teamDirectory: string): boolean {
  return subdirectories(teamDirectory).some((name) => !workGroups.includes(name))
}

/** Removes the instance's parent group, once no machine is left; while one is, it is left at once. */
export async function removeParent(cgroups: Cgroups): Promise<void> {
  const trees = Object.values(cgroups.trees)
  const isUsed = (team: string) => trees.some((tree) => containsRun(`${tree}/${cgroups.parent}/${team}`))
  for (let round = 0; round < REMOVE_ROUNDS; round += 1) {
    for (const team of listTeams(cgroups)) removeTeam(cgroups, team)
    for (const tree of trees) tryRemove(`${tree}/${cgroups.parent}`)
    // Processes that worked for a removed machine may be about to end.
    if (listTeams(cgroups).every(isUsed)) return
    await delay(KILL_PAUSE_MS)
  }
}

// A stopped process keeps SIGKILL pending and a running one can fork away from the list: freeze, signal all, thaw,
// and look again.
function killFrozen(directory: string): void {
  tryWrite(`${directory}/freezer.state`, 'FROZEN')
  for (const pid of processesBelow(directory)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended in the meantime.
    }
  }
  tryWrite(`${directory}/freezer.state`, 'THAWED')
}

export function processesBelow(directory: string): number[] {
  const own = tryRead(`${directory}/cgroup.procs`).split('\n').filter(Boolean).map(Number)
  return [...own, ...subdirectories(directory).flatMap((child) => processesBelow(`${directory}/${child}`))]
}

export function groupDirectory(cgroups: Cgroups, tree: string, container: string, child?: string): string {
  const directory = `${tree}/${cgroups.parent}/${placeOf(cgroups, container)}`
  return child === undefined ? directory : `${directory}/${child}`
}

/** Runs of an engine before us are looked for once. One that is nowhere has its place in the parent, where nothing is. */
function placeOf(cgroups: Cgroups, container: string): string {
  const known = cgroups.places.get(container)
  if (known !== undefined) return known
  const places = [container, ...listTeams(cgroups).map((team) => `${team}/${container}`)]
  const found = places.find((place) =>
    Object.values(cgroups.trees).some((tree) => existsSync(`${tree}/${cgroups.parent}/${place}`)),
  )
  if (found !== undefined) cgroups.places.set(container, found)
  return found ?? container
}

export function subdirectories(directory: string): string[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
  } catch {
    return []
  }
}

export function tryRead(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

export function tryWrite(path: string, text: string): void {
  try {
    writeFileSync(path, text)
  } catch {
    // The group was removed in the meantime, which is the goal of writing to it.
  }
}

export function tryRemove(directory: string): void {
  try {
    rmdirSync(directory)
  } catch {
    // Absent, or still in use: the next sweep tries again.
  }
}
