// Prepared statements: their parameters, and that Postgres plans them only once.

import { type Kysely, sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts'
import { silentLog } from '../lib/log.ts'
import { findKeys } from './presented-credentials.ts'
import { type Database, openDatabase } from './db.ts'
import { prepare } from './prepared.ts'
import { changeState, type StateChange } from './unit-state.ts'

let database: TestDatabase
let db: Kysely<Database>
let timesWritten = 0

beforeAll(async () => {
  database = await createTestDatabase()
  db = openDatabase(database.url, silentLog)
})
afterAll(async () => {
  await db.destroy()
  await database.drop()
})

const both = prepare<{ text: string; sum: bigint }, { text: string; least: bigint }>(
  'of_the_test',
  ['text', 'least'],
  ({ text, least }) => {
    timesWritten += 1
    return sql`select ${text}::text as text, ${least}::bigint + ${1n}::bigint + ${least}::bigint as sum`
  },
)

test('a prepared statement returns the right rows for concurrent calls and in a transaction', async () => {
  const asked = Array.from({ length: 50 }, (_, n) => ({ text: `'; ${n} --`, least: BigInt(n) }))
  const answers = await Promise.all(asked.map(async (values) => await both(db, values)))
  expect(answers).toEqual(asked.map(({ text, least }) => [{ text, sum: 2n * least + 1n }]))
  const inside = await db.transaction().execute(async (tx) => await both(tx, { text: 'a', least: -1n }))
  expect(inside).toEqual([{ text: 'a', sum: -1n }])
  expect(timesWritten).toBe(1)
})

test('a connection prepares the statement by name once and eventually uses a generic plan', async () => {
  await db.connection().execute(async (connection) => {
    for (let times = 0; times < 10; times += 1) await both(connection, { text: 'a', least: 1n })
    const { rows } = await sql`
      select name, custom_plans as custom, generic_plans as generic from pg_prepared_statements
    `.execute(connection)
    expect(rows).toEqual([{ name: 'of_the_test', custom: 5n, generic: expect.anything() }])
  })
})

test('a prepared statement that fails can be used again', async () => {
  const failing = prepare<unknown, { by: number }>(
    'that_fails',
    ['by'],
    ({ by }) => sql`select 1 / ${by}::int`,
  )
  await expect(failing(db, { by: 0 })).rejects.toThrow('division by zero')
  expect(await failing(db, { by: 1 })).toEqual([{ '?column?': 1 }])
})

test('a statement without a name is prepared once it is repeated, with values of any kind', async () => {
  await db.connection().execute(async (connection) => {
    const preparedSo = async () => {
      const { rows } = await sql<{
        text: string
      }>`select statement as text from pg_prepared_statements`.execute(connection)
      return rows.filter(({ text }) => text.includes('as echoed')).length
    }
    const echo = async (value: string | null) => {
      const { rows } = await sql`select ${value}::text as echoed`.execute(connection)
      expect(rows).toEqual([{ echoed: value }])
    }
    for (const value of ['a', null, "'; --", '1']) await echo(value)
    expect(await preparedSo()).toBe(0)
    for (const value of ['b', null, '$1']) await echo(value)
    expect(await preparedSo()).toBe(1)
  })
})

test('a repeated statement that fails can be used again', async () => {
  const divide = async (by: number) => (await sql`select 6 / ${by}::int as part`.execute(db)).rows
  for (let times = 0; times < 6; times += 1) expect(await divide(3)).toEqual([{ part: 2 }])
  await expect(divide(0)).rejects.toThrow('division by zero')
  expect(await divide(2)).toEqual([{ part: 3 }])
})

test('the look-up of one key and a change of state that begins to cost have general plans', async () => {
  await db.connection().execute(async (connection) => {
    const at = new Date()
    const change: StateChange = {
      id: 'no such unit',
      from: { state: 'creating', revision: 0n },
      to: { state: 'running', generation: 1, stoppedReason: null, frozen: false },
      at,
      opens: [{ kind: 'compute', nanoCentsPerHour: 1n }],
      closes: [],
      endedAt: null,
      set: { startedAt: at },
    }
    for (let times = 0; times < 20; times += 1) {
      expect(await findKeys(connection, [`no such key ${times}`])).toEqual([])
      expect(await changeState(connection, change)).toBe(false)
    }
    const { rows } = await sql<{ text: string; custom: bigint }>`
      select statement as text, custom_plans as custom from pg_prepared_statements
    `.execute(connection)
    const plansOf = (part: string) =>
      rows.filter(({ text }) => text.includes(part)).map(({ custom }) => custom)
    expect(plansOf('"credentials"."hash"')).toEqual([5n])
    expect(plansOf('insert into "meters"')).toEqual([5n])
  })
})
