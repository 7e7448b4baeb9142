// What every operation receives. Built once, by main.

import type { Kysely } from 'kysely'
import type { Config } from './config.ts'
import type { Engine } from './engine/engine.ts'
import type { Clock } from './lib/clock.ts'
import type { Log } from './lib/log.ts'
import type { Database } from './store/db.ts'

export type App = {
  config: Config
  db: Kysely<Database>
  engine: Engine
  clock: Clock
  log: Log
}
