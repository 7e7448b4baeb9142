// Kills what a soak is about, at random: Berth's own processes, those of machines, and now and then everything of
// Berth at once.

import { setTimeout as delay } from 'node:timers/promises'
import type { Random } from '../simulation/random.ts'
import type { Berth } from '../support/berth.ts'
import {
  killPostgres,
  killRole,
  killRunPart,
  killSupervisor,
  ownProcesses,
  type RunPart,
} from '../support/kill.ts'
import { pickKind } from './weighted.ts'
import type { World } from './world.ts'

const weights = {
  engine: 5,
  server: 5,
  gateway: 2,
  Postgres: 3,
  monitor: 4,
  init: 3,
  sandbox: 3,
  gofer: 2,
  'all of Berth': 1,
}
type Victim = keyof typeof weights

export type Pace = {
  /** Between two kills, at least and at most. */
  pauseMs: [number, number]
  /** How Berth is started again once all of it was killed. */
  restart: () => Promise<Berth>
}

/** Until the soak is over. */
export async function killAtRandom(world: World, random: Random, { pauseMs, restart }: Pace): Promise<void> {
  const [least, most] = pauseMs
  for (;;) {
    await delay(least + random.below(most - least), undefined, { signal: world.over }).catch(() => {})
    if (world.over.aborted) return
    const victim = pickKind(random, weights)
    try {
      if (await kill(world, random, victim, restart)) world.journal.killed(victim)
    } catch (error) {
      world.journal.fault(`killing ${victim}: ${String(error)}`)
    }
  }
}

/** False: there is no such process just now. */
async function kill(
  world: World,
  random: Random,
  victim: Victim,
  restart: () => Promise<Berth>,
): Promise<boolean> {
  const { berth } = world
  switch (victim) {
    case 'engine':
    case 'server':
    case 'gateway':
      return await killRole(berth, victim)
    case 'Postgres':
      return await killPostgres(berth)
    case 'all of Berth':
      await killSupervisor(berth)
      world.berth = await restart()
      return true
    default:
      return await killMachine(berth, random, victim)
  }
}

async function killMachine(berth: Berth, random: Random, part: RunPart): Promise<boolean> {
  const runs = (await ownProcesses(berth)).flatMap(
    ({ command }) => /^conmon .* --cid (unit_[0-9a-f]+)-\d+ /.exec(command)?.[1] ?? [],
  )
  const [first, ...others] = runs
  return first !== undefined && (await killRunPart(berth, random.pick([first, ...others]), part))
}
