import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { silentLog } from '../lib/log.ts'
import { createTestDatabase } from '../../test/support/postgres.ts'
import { openDatabase } from './db.ts'
import { isOutage } from './outage.ts'

const failure = async (work: Promise<unknown>): Promise<unknown> =>
  await work.then(
    () => new Error('it worked'),
    (error: unknown) => error,
  )

test('a socket without a listener is an outage', async () => {
  const db = openDatabase('postgresql://berth@/berth?host=/nonexistent', silentLog)
  expect(isOutage(await failure(sql`select 1`.execute(db)))).toBe(true)
  await db.destroy()
})

test('a connection closed by the server is an outage', async () => {
  const database = await createTestDatabase()
  const db = openDatabase(database.url, silentLog)
  const waiting = failure(sql`select pg_sleep(30) /* victim */`.execute(db))
  const end = () =>
    sql<{ ended: number }>`
      select count(pg_terminate_backend(pid))::int as ended from pg_stat_activity
      where datname = current_database() and query like '%/* victim */%' and pid <> pg_backend_pid()
    `.execute(db)
  await expect.poll(async () => (await end()).rows[0]?.ended).toBe(1)
  expect(isOutage(await waiting)).toBe(true)
  await db.destroy()
  await database.drop()
})

test('a connection closed during a transaction is an outage, whichever statement notices it', async () => {
  const database = await createTestDatabase()
  const db = openDatabase(database.url, silentLog)
  const broken = await failure(
    db.transaction().execute(async (transaction) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(transaction)
      await sql`select pg_terminate_backend(${rows[0]?.pid})`.execute(db)
      // The connection is known to be broken by the time that the next statement wants it.
      await new Promise((resolve) => setTimeout(resolve, 100))
      await sql`select 1`.execute(transaction)
    }),
  )
  expect(isOutage(broken), String(broken)).toBe(true)
  await db.destroy()
  await database.drop()
})

test('an error in the statement is not an outage, nor is an error of another type with a similar message', async () => {
  const database = await createTestDatabase()
  const db = openDatabase(database.url, silentLog)
  expect(isOutage(await failure(sql`select nonsense`.execute(db)))).toBe(false)
  expect(isOutage(new TypeError('ECONNREFUSED'))).toBe(false)
  await db.destroy()
  await database.drop()
})
