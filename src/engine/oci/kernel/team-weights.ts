// Gives teams that used the processors much lately a smaller share while others need them (decisions/processor.md), as Unix
// does with processes: every second each team's group gets a weight by its use in the last seconds. Without
// competition a weight limits nothing.

import { availableParallelism } from 'node:os'
import { type Clock, SECOND } from '../../../lib/clock.ts'
import { type Cgroups, listTeams, removeTeam, teamGroup } from './cgroups.ts'
import { cpuTimeOfTeam, FULL_WEIGHT, setTeamWeight } from './team-groups.ts'

const LOOK_EVERY_MS = SECOND
/** After so long, what was used counts half. */
const HALF_LIFE_MS = 5 * SECOND
/** A team that takes no more than this part of what all teams take keeps its full weight. */
const LITTLE = 0.1
/** All teams together, as a part of the host's processors: where they take less, it counts as so much. */
const LITTLE_IN_ALL = 0.25
/**
 * The least share, whatever was used: a process that holds a kernel lock which others wait for must be able to
 * finish.
 */
export const LEAST_WEIGHT = 32
/** Groups that are read without a pause: a fraction of a millisecond. */
const TEAMS_A_SLICE = 32

/** `recent`: a part of all processors. */
type Use = { cpuUs: number; atMs: number; recent: number }

/** `networkGroups`: of the machines that this host has now. */
export function watchTeamWeights(
  { cgroups, clock }: { cgroups: Cgroups; clock: Clock },
  networkGroups: () => number[],
): { close(): Promise<void> } {
  const closed = new AbortController()
  const uses = new Map<string, Use>()
  const look = async () => {
    while (!closed.signal.aborted) {
      await weighTeams(cgroups, { uses, present: new Set(networkGroups().map(teamGroup)), clock })
      await clock.sleep(LOOK_EVERY_MS, closed.signal).catch(() => {})
    }
  }
  const looking = look()
  return {
    close: async () => {
      closed.abort()
      await looking
    },
  }
}

/** `uses`: what the last call has seen, and this one's afterwards. `present`: teams that have machines. */
export async function weighTeams(
  cgroups: Cgroups,
  { uses, present, clock }: { uses: Map<string, Use>; present: Set<string>; clock: Clock },
): Promise<void> {
  const teams = listTeams(cgroups)
  for (const team of uses.keys()) if (!teams.includes(team)) uses.delete(team)
  for (const slice of slices(teams)) {
    for (const team of slice) {
      const cpuUs = cpuTimeOfTeam(cgroups, team)
      if (cpuUs === null) continue
      const before = uses.get(team)
      uses.set(team, nextUse(before, cpuUs, clock.monotonicMs()))
      // Not one that was made since the last look: a pull or a start is about to use it.
      if (!present.has(team) && before?.cpuUs === cpuUs) removeTeam(cgroups, team)
    }
    await new Promise(setImmediate)
  }
  const total = [...uses.values()].reduce((sum, { recent }) => sum + recent, 0)
  for (const slice of slices(teams)) {
    // Written each time: a group that was created again meanwhile has the kernel's default weight.
    for (const team of slice) setTeamWeight(cgroups, team, weightOf(uses.get(team)?.recent ?? 0, total))
    await new Promise(setImmediate)
  }
}

/** What is known of a team's use, with what its group's counter says by now. */
export function nextUse(
  before: Use | undefined,
  cpuUs: number,
  atMs: number,
  cpus = availableParallelism(),
): Use {
  // Its group is new, or was created again.
  if (before === undefined || cpuUs < before.cpuUs) return { cpuUs, atMs, recent: 0 }
  const elapsedMs = Math.max(1, atMs - before.atMs)
  const now = (cpuUs - before.cpuUs) / 1000 / elapsedMs / cpus
  const kept = 0.5 ** (elapsedMs / HALF_LIFE_MS)
  return { cpuUs, atMs, recent: before.recent * kept + now * (1 - kept) }
}

/** By the square, so that one that takes twice as much as another falls well below it. `total`: of all teams. */
export function weightOf(recent: number, total: number): number {
  const part = recent / Math.max(total, LITTLE_IN_ALL)
  const share = Math.min(1, LITTLE / Math.max(part, Number.EPSILON))
  return Math.max(LEAST_WEIGHT, Math.round(FULL_WEIGHT * share * share))
}

function slices(teams: string[]): string[][] {
  const count = Math.ceil(teams.length / TEAMS_A_SLICE)
  return Array.from({ length: count }, (_, n) => teams.slice(n * TEAMS_A_SLICE, (n + 1) * TEAMS_A_SLICE))
}
