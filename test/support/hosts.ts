// The host that a new database has, with an engine.

import type { Kysely } from 'kysely'
import type { Engine } from '../../src/engine/engine.ts'
import type { NewHost } from '../../src/engine/fleet.ts'
import type { Database } from '../../src/store/db.ts'

export async function firstHost(db: Kysely<Database>, engine: Engine): Promise<NewHost> {
  const { id, name, region } = await db
    .selectFrom('hosts')
    .select(['id', 'name', 'region'])
    .orderBy('id')
    .executeTakeFirstOrThrow()
  return { id, name, region, engine }
}
