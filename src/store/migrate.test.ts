import { Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts'
import { loadDatabase, readRecorded } from '../../test/support/recorded-installation.ts'
import { silentLog } from '../lib/log.ts'
import { type Database, openDatabase } from './db.ts'
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

it('migrate refuses a database from before its first step with an explanation and leaves it unchanged', async () => {
  const own = await createTestDatabase()
  const db = openDatabase(own.url, silentLog)
  const steps = () => sql`select name from kysely_migration order by name`.execute(db)
  await sql`delete from kysely_migration where name > '0028'`.execute(db)
  await sql`insert into kysely_migration (name, timestamp) values ('0027-instances', now())`.execute(db)
  const before = await steps()
  await expect(migrate(db)).rejects.toThrow(/older than this release can upgrade .*0027-instances/)
  expect((await steps()).rows).toEqual(before.rows)
  await db.destroy()
  await own.drop()
})

// Reliability F28.
it('migrate gives a lock that another session holds its time, tries again, and applies the step in the end', async () => {
  const own = await createEmptyDatabase()
  const admin = new pg.Client(own.adminUrl)
  await admin.connect()
  await loadDatabase(admin, (await readRecorded()).database)
  await admin.end()
  const db = openImpatient(own.url)
  const other = new pg.Client(own.url)
  await other.connect()
  await other.query('begin; lock table units in row exclusive mode')
  let missed = 0
  await migrate(db, () => {
    missed += 1
    if (missed === 3) void other.query('commit')
  })
  expect(missed).toBeGreaterThanOrEqual(3)
  expect((await sql`select distinct runtime from units`.execute(db)).rows).toEqual([{ runtime: null }])
  await other.end()
  await db.destroy()
  await own.drop()
})

/** Waits for a lock a fifth of a second, where the product waits ten. */
function openImpatient(connectionString: string): Kysely<Database> {
  return new Kysely({
    dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString, lock_timeout: 200 }) }),
  })
}
