// What every operation receives. Built once, by main.

import type { Kysely } from 'kysely'
import type { Config } from './config.ts'
import type { Engine } from './engine/engine.ts'
import type { Clock } from './lib/clock.ts'
import type { SecretKey } from './lib/crypto.ts'
import type { Failpoints } from './lib/failpoints.ts'
import type { Log } from './lib/log.ts'
import { createSteadyClock, type SteadyClock } from './lib/steady-clock.ts'
import { createSingleFlight, type SingleFlight } from './lib/single-flight.ts'
import type { Database } from './store/db.ts'

export type AppParts = {
  config: Config
  db: Kysely<Database>
  engine: Engine
  clock: Clock
  log: Log
  /** Seals secrets and boot files at rest. */
  secretKey: SecretKey
  failpoints: Failpoints
}

export type App = AppParts & {
  /** The time the service goes by. */
  clock: SteadyClock
  /** The database, the engine or this process was away since the last heartbeat (domain/time/heartbeat.ts). */
  outage: { isOn: boolean }
  /**
   * Units on their way to another state, by what is done and to which. Whoever needs the same while it is
   * under way, a second caller or the loop that resumes what a crash left, joins it.
   */
  ways: SingleFlight<void>
  /** How many calls use a unit just now, by its id. */
  uses: Map<string, number>
}

export function createApp(parts: AppParts): App {
  const clock = createSteadyClock(parts.clock)
  return { ...parts, clock, outage: { isOn: false }, ways: createSingleFlight<void>(clock), uses: new Map() }
}
