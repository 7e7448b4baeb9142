// Kills processes at random: Berth’s own, those of machines, and at times all of Berth at once.

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Random } from '../simulation/random.ts'
import type { Berth } from '../support/berth.ts'
import { killPostgres, killRole, killRunPart, killSupervisor, type RunPart } from '../support/kill.ts'
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
  /** The least and the longest pause between two kills. */
  pauseMs: [number, number]
  /** Starts Berth again after all of it was killed. */
  restart: () => Promise<Berth>
}

/** Runs until the soak is over. */
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

/** Returns false when there is no such process now. */
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
  const machines = await readdir(join(berth.dataDir, 'machines'))
  const first = random.below(machines.length || 1)
  // Those that do not run have no such process.
  for (const id of [...machines.slice(first), ...machines.slice(0, first)]) {
    if (await killRunPart(berth, id, part)) return true
  }
  return false
}
