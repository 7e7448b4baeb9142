// Control groups of machines, in both forms. Version 2 is one tree; version 1 (also in its hybrid form) is
// one tree a controller, where a machine has the same path in each. Our parent is a root-level group named
// with the instance, so that no login session's end takes machines with it (design 3). Below it each team has a group
// (team-groups.ts) that holds those of its runs; runs that an earlier version began lie in the parent itself.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

export type Cgroups = {
  version: 1 | 2
  /** Version 2: the one tree. Version 1: every tree, by controller. */
  trees: Record<string, string>
  /** The tree whose membership and freezing we go by. */
  main: string
  /** The group that holds all groups of this instance, relative to a tree. */
  parent: string
  /** Where the groups of runs lie, relative to the parent, as far as it is known. */
  places: Map<string, string>
}

/** No run is named so: runs are named by their unit. */
const TEAM = /^team-\d+$/
/** In a team's group: what works for the team outside its machines. */
export const WORK = 'work'

/** Pauses grow by a millisecond each: a second in all. */
const FREEZE_ROUNDS = 45
const FREEZE_ANEW_EVERY = 5
const KILL_ROUNDS = 60
/** Who forks meanwhile leaves another one. */
const DISSOLVE_ROUNDS = 20
const KILL_PAUSE_MS = 20
const REMOVE_ROUNDS = 50

export function openCgroups(instanceId: string, root = '/sys/fs/cgroup'): Cgroups {
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

/** From now on the run's group lies in its team's. Before the runtime is told where it lies. */
export function placeInTeam(cgroups: Cgroups, container: string, team: number): void {
  cgroups.places.set(container, `${teamGroup(team)}/${container}`)
}

/** The path the runtime is told: absolute within each tree. */
export function cgroupPath(cgroups: Cgroups, container: string): string {
  return `/${cgroups.parent}/${placeOf(cgroups, container)}`
}

/** Host process ids in a group and the groups below it. */
export function processesIn(cgroups: Cgroups, container: string, child?: string): number[] {
  return processesBelow(groupDirectory(cgroups, cgroups.main, container, child))
}

/** Kills everything in a group, or in a group below it. True when nothing is left. */
export async function killAll(cgroups: Cgroups, container: string, child?: string): Promise<boolean> {
  const directory = groupDirectory(cgroups, cgroups.main, container, child)
  for (let round = 0; round < KILL_ROUNDS; round += 1) {
    if (processesBelow(directory).length === 0) return true
    if (cgroups.version === 2) tryWrite(`${directory}/cgroup.kill`, '1')
    else killFrozen(directory)
    // What is killed is mostly gone within a millisecond or two.
    await delay(Math.min(round + 1, KILL_PAUSE_MS))
  }
  return processesBelow(directory).length === 0
}

/**
 * Stops every process of a group where it stands. False when that takes too long: some may stand, some not.
 * Version 1 misses a process now and then that joins, forks or was thawed a moment ago, and then never comes
 * to an end by itself: asked again and, now and then, begun anew, it does.
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

/** Processor time in each period from now on; the period is the runtime's (bundle.ts). */
export function setCpuQuota(cgroups: Cgroups, container: string, quotaUs: number): void {
  if (cgroups.version === 2)
    tryWrite(`${groupDirectory(cgroups, cgroups.main, container)}/cpu.max`, `${quotaUs}`)
  const tree = cgroups.trees['cpu']
  if (tree) tryWrite(`${groupDirectory(cgroups, tree, container)}/cpu.cfs_quota_us`, `${quotaUs}`)
}

/**
 * Bytes that buffers of its sockets may take. Version 1 counts them apart, without a limit of its own, and only those of
 * sockets made once there is one: hence before the runtime makes the group. Version 2 counts them as memory.
 */
export function limitSocketBuffers(cgroups: Cgroups, container: string, bytes: number): void {
  const tree = cgroups.trees['memory']
  if (cgroups.version === 2 || !tree) return
  const directory = groupDirectory(cgroups, tree, container)
  mkdirSync(directory, { recursive: true })
  tryWrite(`${directory}/memory.kmem.tcp.limit_in_bytes`, String(bytes))
}

/** Whether all of a group stands still. */
export function isFrozen(cgroups: Cgroups, container: string): boolean {
  const directory = groupDirectory(cgroups, cgroups.main, container)
  if (cgroups.version === 2) return /^frozen 1$/m.test(tryRead(`${directory}/cgroup.events`))
  return tryRead(`${directory}/freezer.state`).trim() === 'FROZEN'
}

function setFrozen(cgroups: Cgroups, directory: string, frozen: boolean): void {
  if (cgroups.version === 2) tryWrite(`${directory}/cgroup.freeze`, frozen ? '1' : '0')
  else tryWrite(`${directory}/freezer.state`, frozen ? 'FROZEN' : 'THAWED')
}

/** Makes a group below a machine's, in the main tree only: for telling the processes of one exec apart. */
export function createChild(cgroups: Cgroups, container: string, child: string): void {
  mkdirSync(groupDirectory(cgroups, cgroups.main, container, child), { recursive: true })
}

export function removeChild(cgroups: Cgroups, container: string, child: string): void {
  tryRemove(groupDirectory(cgroups, cgroups.main, container, child))
}

/** Names of the groups below a machine's. */
export function listChildren(cgroups: Cgroups, container: string): string[] {
  return subdirectories(groupDirectory(cgroups, cgroups.main, container))
}

/** Takes what is in groups below a machine's into its own, and them away. */
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

/** How often the kernel killed a process of the group for memory. Must be read before the group goes. */
export function countOomKills(cgroups: Cgroups, container: string): number {
  const file =
    cgroups.version === 2
      ? `${groupDirectory(cgroups, cgroups.main, container)}/memory.events`
      : `${groupDirectory(cgroups, cgroups.trees['memory'] ?? '', container)}/memory.oom_control`
  return Number(/^oom_kill (\d+)$/m.exec(tryRead(file))?.[1] ?? 0)
}

/** Each processor holds up to 64 pages that it has charged and not used yet, which the next refusal takes back. */
const CHARGED_AHEAD_BYTES = 1024 * 1024

/** Whether the group has ever been at its own limit: else the kernel killed in it for want of the host's memory. */
export function hasMetMemoryLimit(cgroups: Cgroups, container: string): boolean {
  if (cgroups.version === 2) {
    const events = tryRead(`${groupDirectory(cgroups, cgroups.main, container)}/memory.events`)
    return Number(/^oom (\d+)$/m.exec(events)?.[1] ?? 0) > 0
  }
  const directory = groupDirectory(cgroups, cgroups.trees['memory'] ?? '', container)
  const read = (file: string) => Number(tryRead(`${directory}/${file}`))
  // `failcnt` stays 0 on Linux 6.18, whatever is refused.
  return ['memory', 'memory.memsw'].some((of) => {
    const [most, limit] = [read(`${of}.max_usage_in_bytes`), read(`${of}.limit_in_bytes`)]
    return limit > 0 && most >= limit - CHARGED_AHEAD_BYTES
  })
}

/** Bytes that are in memory alone: what the processes of a group have written and no file holds. */
export function memoryInUse(cgroups: Cgroups, container: string): number {
  const tree = cgroups.version === 2 ? cgroups.main : (cgroups.trees['memory'] ?? '')
  const text = tryRead(`${groupDirectory(cgroups, tree, container)}/memory.stat`)
  const names = cgroups.version === 2 ? ['anon', 'shmem'] : ['total_rss', 'total_shmem']
  return names
    .map((name) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0))
    .reduce((sum, bytes) => sum + bytes)
}

/** Bytes that the processes of a group have written to files and that no disk holds yet. */
export function dirtyBytes(cgroups: Cgroups, container: string): number {
  const tree = cgroups.version === 2 ? cgroups.main : (cgroups.trees['memory'] ?? '')
  const text = tryRead(`${groupDirectory(cgroups, tree, container)}/memory.stat`)
  const counted = [...text.matchAll(/^(?:file|total)_(?:dirty|writeback) (\d+)$/gm)]
  return counted.reduce((sum, [, bytes]) => sum + Number(bytes), 0)
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

/** Names of the groups of all runs of this instance, from every tree. */
export function listCgroups(cgroups: Cgroups): string[] {
  const teams = listTeams(cgroups)
  const all = Object.values(cgroups.trees).flatMap((tree) => {
    const parent = `${tree}/${cgroups.parent}`
    const below = teams.flatMap((team) => subdirectories(`${parent}/${team}`))
    return [...subdirectories(parent), ...below].filter((name) => !TEAM.test(name) && name !== WORK)
  })
  return [...new Set(all)]
}

/** Names of the groups of teams, from every tree. */
export function listTeams(cgroups: Cgroups): string[] {
  const all = Object.values(cgroups.trees).flatMap((tree) => subdirectories(`${tree}/${cgroups.parent}`))
  return [...new Set(all)].filter((name) => TEAM.test(name))
}

/** Takes a team's group away, unless something of it is still here. */
export function removeTeam(cgroups: Cgroups, team: string): void {
  for (const tree of Object.values(cgroups.trees)) {
    const directory = `${tree}/${cgroups.parent}/${team}`
    if (subdirectories(directory).some((name) => name !== WORK)) continue
    tryRemove(`${directory}/${WORK}`)
    tryRemove(directory)
  }
}

/** Takes the instance's own parent group away, once no machine is left. */
export async function removeParent(cgroups: Cgroups): Promise<void> {
  for (let round = 0; round < REMOVE_ROUNDS; round += 1) {
    for (const team of listTeams(cgroups)) removeTeam(cgroups, team)
    for (const tree of Object.values(cgroups.trees)) tryRemove(`${tree}/${cgroups.parent}`)
    // What worked for a machine that is gone may be about to end.
    if (listTeams(cgroups).length === 0) return
    await delay(KILL_PAUSE_MS)
  }
}

// A stopped process keeps SIGKILL pending and a running one can fork away from the list just read: freeze,
// signal all, thaw, and look again.
function killFrozen(directory: string): void {
  tryWrite(`${directory}/freezer.state`, 'FROZEN')
  for (const pid of processesBelow(directory)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It ended by itself meanwhile.
    }
  }
  tryWrite(`${directory}/freezer.state`, 'THAWED')
}

function processesBelow(directory: string): number[] {
  const own = tryRead(`${directory}/cgroup.procs`).split('\n').filter(Boolean).map(Number)
  return [...own, ...subdirectories(directory).flatMap((child) => processesBelow(`${directory}/${child}`))]
}

function groupDirectory(cgroups: Cgroups, tree: string, container: string, child?: string): string {
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

function subdirectories(directory: string): string[] {
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
    // The group went away meanwhile, which is what writing to it was for.
  }
}

function tryRemove(directory: string): void {
  try {
    rmdirSync(directory)
  } catch {
    // Absent, or still in use: the next sweep sees it again.
  }
}
