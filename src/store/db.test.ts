import { afterAll, beforeAll, expect, it } from 'vitest'
import { sql } from 'kysely'
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts'
import { silentLog } from '../lib/log.ts'
import { openDatabase } from './db.ts'
import { migrate } from './migrate.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(async () => await database.drop())

it('a connection closed by Postgres fails only its own query, idle or in a transaction', async () => {
  const db = openDatabase(database.url, silentLog)
  const endOthers = sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`
  const broken = db.transaction().execute(async (transaction) => {
    await sql`select 1`.execute(transaction)
    await endOthers.execute(db)
    await new Promise((resolve) => setTimeout(resolve, 50))
    await sql`select 1`.execute(transaction)
  })
  await expect(broken).rejects.toThrow()
  expect((await sql<{ one: number }>`select 1 as one`.execute(db)).rows).toEqual([{ one: 1 }])
  await db.destroy()
})

it('a bigint column is read as bigint', async () => {
  const db = openDatabase(database.url, silentLog)
  const { rows } = await sql<{ big: bigint }>`select 9007199254740993::bigint as big`.execute(db)
  expect(rows[0]?.big).toBe(9_007_199_254_740_993n)
  await db.destroy()
})

it('migrations can run repeatedly and concurrently', async () => {
  const db = openDatabase(database.url, silentLog)
  await Promise.all([migrate(db), migrate(db), migrate(db)])
  await db.destroy()
})
