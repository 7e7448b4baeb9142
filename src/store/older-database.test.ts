// The recorded database of an older release (test/support/recorded-installation.ts) after the migrations of this
// release.

import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts'
import {
  loadDatabase,
  type RecordedDatabase,
  readRecorded,
} from '../../test/support/recorded-installation.ts'
import { silentLog } from '../lib/log.ts'
import { openDatabase } from './db.ts'
import { migrate } from './migrate.ts'
import { verifyLedgerOfTeam } from './verify-ledger.ts'

let older: TestDatabase
let fresh: TestDatabase
let recorded: RecordedDatabase

beforeAll(async () => {
  older = await createEmptyDatabase()
  fresh = await createTestDatabase()
  recorded = (await readRecorded()).database
  await ask(older.adminUrl, (client) => loadDatabase(client, recorded))
  const db = openDatabase(older.url, silentLog)
  await migrate(db)
  await db.destroy()
})
afterAll(async () => {
  await older.drop()
  await fresh.drop()
})

async function ask<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

it('an upgraded database keeps every row of the older release with the same values', async () => {
  await ask(older.url, async (client) => {
    for (const [table, rows] of Object.entries(recorded.tables)) {
      if (table.startsWith('kysely_')) continue
      // A row may have gained columns; its old values must be unchanged.
      const { rows: missing } = await client.query<{ row: string }>(
        `select row from unnest($1::text[]) as row
         where not exists (select from "${table}" t where to_jsonb(t) @> row::jsonb)`,
        [rows],
      )
      expect({ table, missing }).toEqual({ table, missing: [] })
    }
    expect(Object.values(recorded.tables).flat().length).toBeGreaterThan(100)
  })
})

it('an upgraded database has the same schema as a new installation', async () => {
  const [upgraded, made] = await Promise.all([older, fresh].map(({ url }) => ask(url, schemaOf)))
  expect(upgraded).toEqual(made)
  expect(made?.length).toBeGreaterThan(300)
})

it('an upgraded database has a correct ledger for every team', async () => {
  const db = openDatabase(older.url, silentLog)
  const teams = await db.selectFrom('teams').select('id').execute()
  expect(teams).toHaveLength(1)
  for (const { id } of teams) expect(await verifyLedgerOfTeam(db, id)).toEqual([])
  await db.destroy()
})

/** Columns, constraints, indexes, functions, triggers and rights, a line for each. */
async function schemaOf(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ line: string }>(`
    with own as (select oid, relname, relacl from pg_class where relnamespace = 'public'::regnamespace)
    select line from (
      select format('column %s.%s %s null=%s default=%s', relname, attname, format_type(atttypid, atttypmod),
        not attnotnull, pg_get_expr(adbin, adrelid)) as line
      from own join pg_attribute on attrelid = own.oid and attnum > 0 and not attisdropped
        left join pg_attrdef on adrelid = own.oid and adnum = attnum
      union all select format('constraint %s %s', conrelid::regclass, pg_get_constraintdef(oid))
      from pg_constraint where connamespace = 'public'::regnamespace and contype <> 'n'
      union all select format('index %s', indexdef) from pg_indexes where schemaname = 'public'
      union all select format('function %s', pg_get_functiondef(oid))
      from pg_proc where pronamespace = 'public'::regnamespace
      union all select format('trigger %s', pg_get_triggerdef(pg_trigger.oid))
      from pg_trigger join own on tgrelid = own.oid where not tgisinternal
      union all select format('rights %s %s', relname, relacl) from own
    ) as lines order by line`)
  return rows.map(({ line }) => line)
}
