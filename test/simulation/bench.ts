// What simulations run on, one after the other: their own database with one team.

import type { NewHost } from '../../src/engine/fleet.ts'
import { meetLocalHost } from '../../src/store/hosts.ts'
import pg from 'pg'
import type { Caller } from '../../src/domain/credentials/caller.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { getTypeParser, openDatabase } from '../../src/store/db.ts'
import { addKey, makeCaller } from '../support/domain.ts'
import { createTestDatabase } from '../support/postgres.ts'

export type Bench = {
  /** The only connection; the simulator decides whose query is next. */
  client: pg.Client
  /** The host that the database begins with. */
  host: Omit<NewHost, 'engine'>
  /** Two keys of one team, each with room for a few units. */
  callers: readonly [Caller, Caller]
  /** A key with room for all units. */
  roomy: Caller
  /** Keys of other teams, whose units are on other hosts where there are several. */
  neighbors: readonly [Caller, Caller]
  close: () => Promise<void>
}

export async function createBench(socketDir?: string): Promise<Bench> {
  const database = await createTestDatabase(socketDir)
  const db = openDatabase(database.url, silentLog)
  const around = { db, clock: systemClock }
  const caller = await makeCaller(around, { maxConcurrentUnits: 2 }, 'team')
  const another = await addKey(around, caller, { maxConcurrentUnits: 3 })
  const roomy = await addKey(around, caller, { maxConcurrentUnits: 100 })
  const near = await makeCaller(around, { maxConcurrentUnits: 100 }, 'team')
  const far = await makeCaller(around, { maxConcurrentUnits: 100 }, 'team')
  const { id, name, region } = await meetLocalHost(db, { instance: 'test', name: 'only', newId: 'host_new' })
  await db.destroy()
  const client = new pg.Client({ connectionString: database.url, types: { getTypeParser } })
  await client.connect()
  return {
    client,
    host: { id, name, region },
    callers: [caller, another],
    roomy,
    neighbors: [near, far],
    close: async () => {
      await client.end()
      await database.drop()
    },
  }
}
