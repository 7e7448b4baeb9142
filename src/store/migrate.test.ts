import { sql } from 'kysely'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts'
import { silentLog } from '../lib/log.ts'
import { openDatabase } from './db.ts'
import { migrate } from './migrate.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(async () => await database.drop())

it('migrate refuses the database of a newer release with an explanation and leaves it unchanged', async () => {
  const db = openDatabase(database.url, silentLog)
  const steps = () => sql`select name from kysely_migration order by name`.execute(db)
  await sql`insert into kysely_migration (name, timestamp) values ('9999-later', now())`.execute(db)
  const before = await steps()
  await expect(migrate(db)).rejects.toThrow(/newer release of Berth .*9999-later.*restore a backup/)
  expect((await steps()).rows).toEqual(before.rows)
  await db.destroy()
})
