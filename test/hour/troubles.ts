// What is killed in an hour, and when: everything of Berth once at least, and machines while nobody looks after them.

import { setTimeout as delay } from 'node:timers/promises'
import type { Berth } from '../support/berth.ts'
import { killPostgres, killRole, killRunPart, killSupervisor } from '../support/kill.ts'
import type { World } from '../soak/world.ts'
import type { Stopwatch } from './stopwatch.ts'

/** Long enough to be seen, were it billed. */
const AWAY_MS = 20_000

/** What happens at which part of the hour. */
const schedule = [
  { at: 0.15, what: 'server' },
  { at: 0.25, what: 'engine' },
  { at: 0.35, what: 'machine' },
  { at: 0.45, what: 'Postgres' },
  { at: 0.55, what: 'all of Berth' },
  { at: 0.75, what: 'server' },
  { at: 0.8, what: 'engine' },
  { at: 0.9, what: 'all of Berth' },
] as const

export async function bringTrouble(
  world: World,
  stopwatch: Stopwatch,
  { forMs, restart }: { forMs: number; restart: () => Promise<Berth> },
): Promise<void> {
  const beganMs = performance.now()
  for (const { at, what } of schedule) {
    const waitMs = beganMs + at * forMs - performance.now()
    await delay(Math.max(0, waitMs), undefined, { signal: world.over }).catch(() => {})
    if (world.over.aborted) return
    world.journal.killed(what)
    await bring(world, stopwatch, what, restart)
  }
}

async function bring(
  world: World,
  stopwatch: Stopwatch,
  what: (typeof schedule)[number]['what'],
  restart: () => Promise<Berth>,
): Promise<void> {
  switch (what) {
    case 'server':
    case 'engine':
      await killRole(world.berth, what)
      return
    case 'Postgres':
      await killPostgres(world.berth)
      return
    case 'machine':
      return await killMachines(world, stopwatch, performance.now())
    case 'all of Berth': {
      const lastMs = performance.now()
      await killSupervisor(world.berth)
      // Its units have run on, and two of them end while it is away: they are not paid for until it is back.
      await delay(AWAY_MS / 2)
      await killMachines(world, stopwatch, lastMs)
      await delay(AWAY_MS / 2)
      world.berth = await restart()
    }
  }
}

/** Of two that run all the time, one by its own process and one by what keeps its log and exit code. */
async function killMachines(
  { berth }: World,
  stopwatch: Stopwatch,
  lookedAfterUntilMs: number,
): Promise<void> {
  const steady = [...stopwatch.units().values()].filter(
    ({ name, state }) => name.startsWith('steady') && state === 'running',
  )
  for (const [index, part] of (['init', 'monitor'] as const).entries()) {
    const unit = steady[index]
    if (unit && (await killRunPart(berth, unit.id, part))) stopwatch.died(unit.id, lookedAfterUntilMs)
  }
}
