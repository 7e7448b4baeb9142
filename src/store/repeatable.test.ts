// The functions in the database are those of sql/ledger.sql, in a new database and in an upgraded one.

import { readFile } from 'node:fs/promises'
import { type Kysely, sql } from 'kysely'
import pg from 'pg'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts'
import { loadDatabase, readRecorded } from '../../test/support/recorded-installation.ts'
import { silentLog } from '../lib/log.ts'
import { type Database, openDatabase } from './db.ts'
import { migrate } from './migrate.ts'

/** The last release that defined its functions in migrations. */
const LAST_WITHOUT = '0028-order-of-env'

const databases: TestDatabase[] = []
let db: Kysely<Database>
const connections: Kysely<Database>[] = []

const open = async () => connect(await createTestDatabase())

function connect(database: TestDatabase): Kysely<Database> {
  databases.push(database)
  const opened = openDatabase(database.url, silentLog)
  connections.push(opened)
  return opened
}

beforeEach(async () => {
  db = await open()
})
afterAll(async () => {
  await Promise.all(connections.map((each) => each.destroy()))
  await Promise.all(databases.map((each) => each.drop()))
})

/** Creates a database as that release had it. */
async function makeOld(): Promise<Kysely<Database>> {
  const database = await createEmptyDatabase()
  const client = new pg.Client(database.adminUrl)
  await client.connect()
  await loadDatabase(client, (await readRecorded()).database)
  await client.end()
  return connect(database)
}

type Definition = { name: string; definition: string }

/** All of the schema's functions and triggers, as Postgres writes them. */
async function definitionsOf(database: Kysely<Database>): Promise<Definition[]> {
  const { rows } = await sql<Definition>`
    select proname as name, pg_get_functiondef(oid) as definition
    from pg_proc where pronamespace = 'public'::regnamespace
    union all
    select tgname, pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
    order by name, definition
  `.execute(database)
  return rows
}

/** Returns a version that changes whenever Postgres rewrites the row. */
async function versionOfCounted(database: Kysely<Database>): Promise<string | undefined> {
  const { rows } = await sql<{ version: string }>`
    select xmin::text || ' ' || ctid::text as version from pg_proc where proname = 'counted'
  `.execute(database)
  return rows[0]?.version
}

const spoil = sql`
  create or replace function counted(counted_before numeric, price_per_hour bigint, ms bigint) returns bigint
  language sql return 0
`

it('an upgraded database has the same functions as a new one', async () => {
  const old = await makeOld()
  await spoil.execute(old)
  await migrate(old)
  expect(await definitionsOf(old)).toEqual(await definitionsOf(db))
})

it('every function and trigger is defined in sql/ledger.sql', async () => {
  const text = await readFile(new URL('sql/ledger.sql', import.meta.url), 'utf8')
  const defined = [...text.matchAll(/^create or replace (?:function|trigger) (\w+)/gm)].map(
    ([, name]) => name,
  )
  const names = (await definitionsOf(db)).map(({ name }) => name)
  expect(names.length).toBeGreaterThan(10)
  expect(new Set(names)).toEqual(new Set(defined))
})

it('migrate replaces functions whose text has changed and leaves others alone', async () => {
  const before = await definitionsOf(db)
  const version = await versionOfCounted(db)
  await migrate(db)
  expect(await versionOfCounted(db)).toBe(version)

  await spoil.execute(db)
  await sql`update repeatable_sql set sha256 = 'of another text'`.execute(db)
  await migrate(db)
  expect(await definitionsOf(db)).toEqual(before)
})

it('a failed upgrade leaves the database unchanged', async () => {
  const old = await makeOld()
  const before = await definitionsOf(old)
  await sql`drop table credits cascade`.execute(old)
  const broken = await definitionsOf(old)
  expect(broken).not.toEqual(before)
  await expect(migrate(old)).rejects.toThrow(/credits/)
  expect(await definitionsOf(old)).toEqual(broken)
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name desc`.execute(
    old,
  )
  expect(rows[0]?.name).toBe(LAST_WITHOUT)
})
