// What every operation receives. Built once, by main.

import type { Kysely } from 'kysely'
import type { Config } from './config.ts'
import type { Engine } from './engine/engine.ts'
import type { Clock } from './lib/clock.ts'
import type { SecretKey } from './lib/crypto.ts'
import type { Log } from './lib/log.ts'
import { singleFlight } from './lib/single-flight.ts'
import type { Database } from './store/db.ts'

export type AppParts = {
  config: Config
  db: Kysely<Database>
  engine: Engine
  clock: Clock
  log: Log
  /** Seals secrets and boot files at rest. */
  secretKey: SecretKey
}

export type App = AppParts & {
  /**
   * Work on one unit's way to another state, by verb and unit id. Whoever needs the same work while it is
   * under way, a second caller or the loop that resumes what a crash left, joins it.
   */
  drive: (key: string, work: () => Promise<void>) => Promise<void>
}

export function createApp(parts: AppParts): App {
  return { ...parts, drive: singleFlight<void>() }
}
