// The connection of the server to a real Postgres, with one transaction at a time. The simulator decides who is next,
// before each transaction and at each query within one. It also breaks connections, before a query or after it, when
// only the answer is lost.

import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  PostgresDialect,
  type QueryResult,
} from 'kysely'
import type { Client } from 'pg'
import type { Database } from '../../src/store/db.ts'
import type { Gates, Life } from './gates.ts'

export type SimulatedDatabase = {
  for: (life: Life) => Kysely<Database>
  /** Breaks the connection at the query after this many others. */
  breakAfter: (queries: number, side: 'before' | 'after') => void
  setUp: (isUp: boolean) => void
  heal: () => void
  /** For an observer: without waiting and without faults. Only while no transaction is open. */
  direct: Kysely<Database>
  /** Rolls back what a server had begun when it died. */
  cut: (life: Life) => Promise<void>
  query: <Row>(text: string) => Promise<Row[]>
  /** Resolves when no query is running. */
  quiet: () => Promise<void>
  isBusy: () => boolean
}

export function createSimulatedDatabase(
  client: Client,
  gates: Gates,
  onCommitted: () => Promise<void>,
): SimulatedDatabase {
  let underWay: Promise<unknown> = Promise.resolve()
  let busy = 0
  let holder: Session | null = null
  let isUp = true
  let breaking: { queries: number; side: 'before' | 'after' } | null = null

  async function track<T>(work: () => Promise<T>): Promise<T> {
    busy += 1
    const done = work()
    underWay = Promise.allSettled([underWay, done]).then(() => {})
    try {
      return await done
    } finally {
      busy -= 1
    }
  }

  /** One transaction, or one query outside of any. */
  type Session = { life: Life; asked: number; isBroken: boolean; inTransaction: boolean; hasWritten: boolean }

  async function ask<Row>(session: Session, query: CompiledQuery): Promise<QueryResult<Row>> {
    if (session.asked > 0) await gates.pass(session.life, 'database', firstWords(query.sql))
    session.asked += 1
    if (session.isBroken) throw connectionLost()
    const side = takeBreak()
    if (side === 'before') return await breakOff(session)
    const result = await track(async () => {
      const answer = await executeQuery<Row>(client, query)
      if (query.sql === 'begin') session.inTransaction = true
      if (/\b(?:insert into|update|delete from) "/.test(query.sql)) session.hasWritten = true
      if (query.sql === 'commit' || query.sql === 'rollback') session.inTransaction = false
      if (session.hasWritten && !session.inTransaction) await onCommitted()
      return answer
    })
    if (side === 'after') return await breakOff(session)
    return result
  }

  async function breakOff(session: Session): Promise<never> {
    session.isBroken = true
    await rollBack(session)
    throw connectionLost()
  }

  async function rollBack(session: Session): Promise<void> {
    if (!session.inTransaction) return
    session.inTransaction = false
    await tracked.executeQuery(CompiledQuery.raw('rollback'))
  }

  function takeBreak(): 'before' | 'after' | null {
    if (!breaking) return null
    if (breaking.queries-- > 0) return null
    const { side } = breaking
    breaking = null
    return side
  }

  function driverOf(life: Life): Driver {
    const sessions = new WeakMap<DatabaseConnection, Session>()
    return {
      ...transactions,
      acquireConnection: async () => {
        await gates.pass(life, 'database', 'connects', { isFree: () => holder === null })
        if (!isUp) throw connectionLost()
        const session = { life, asked: 0, isBroken: false, inTransaction: false, hasWritten: false }
        holder = session
        const connection: DatabaseConnection = {
          executeQuery: async (query) => await ask(session, query),
          streamQuery: noCursors,
        }
        sessions.set(connection, session)
        return connection
      },
      releaseConnection: async (connection) => {
        if (holder === sessions.get(connection)) holder = null
      },
    }
  }

  const tracked: DatabaseConnection = {
    executeQuery: async (query) => await track(async () => await executeQuery(client, query)),
    streamQuery: noCursors,
  }

  return {
    for: (life) => kyselyOver(driverOf(life)),
    breakAfter: (queries, side) => {
      breaking = { queries, side }
    },
    setUp: (up) => {
      isUp = up
    },
    heal: () => {
      isUp = true
      breaking = null
    },
    cut: async (life) => {
      if (holder?.life !== life) return
      const session = holder
      holder = null
      await rollBack(session)
    },
    query: async <Row>(text: string) => (await tracked.executeQuery<Row>(CompiledQuery.raw(text))).rows,
    quiet: async () => void (await underWay),
    isBusy: () => busy > 0,
    direct: kyselyOver({
      ...transactions,
      acquireConnection: async () => {
        if (holder) throw new Error('a transaction is open')
        return tracked
      },
      releaseConnection: async () => {},
    }),
  }
}

const transactions = {
  init: async () => {},
  beginTransaction: async (connection) => await say(connection, 'begin'),
  commitTransaction: async (connection) => await say(connection, 'commit'),
  rollbackTransaction: async (connection) => await say(connection, 'rollback'),
  destroy: async () => {},
} satisfies Partial<Driver>

async function say(connection: DatabaseConnection, sql: string): Promise<void> {
  await connection.executeQuery(CompiledQuery.raw(sql))
}

function kyselyOver(driver: Driver): Kysely<Database> {
  // Without a pool, because only the SQL dialect is used.
  const postgres = new PostgresDialect({ pool: noPool })
  return new Kysely<Database>({
    dialect: {
      createAdapter: () => postgres.createAdapter(),
      createQueryCompiler: () => postgres.createQueryCompiler(),
      createIntrospector: (db) => postgres.createIntrospector(db),
      createDriver: () => driver,
    },
  })
}

async function noPool(): Promise<never> {
  throw new Error('the simulation has its own connection')
}

const names = new Map<string, string>()

function nameOf(sql: string): string {
  const name = names.get(sql) ?? `statement ${names.size}`
  names.set(sql, name)
  return name
}

/** Prepares each statement once, because schedules repeat the same few statements. */
async function executeQuery<Row>(
  client: Client,
  { sql, parameters }: CompiledQuery,
): Promise<QueryResult<Row>> {
  const name = nameOf(sql)
  const { command, rowCount, rows } = await client.query({ name, text: sql, values: [...parameters] })
  const isWrite = ['INSERT', 'UPDATE', 'DELETE'].includes(command)
  return { rows: rows as Row[], ...(isWrite ? { numAffectedRows: BigInt(rowCount ?? 0) } : {}) }
}

/** The error of the driver (store/outage.ts). */
function connectionLost(): Error {
  return new Error('Connection terminated unexpectedly')
}

function noCursors(): never {
  throw new Error('the simulation knows no cursors')
}

function firstWords(sql: string): string {
  return sql.split(' ', 3).join(' ')
}
