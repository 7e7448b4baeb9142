// The connection to Postgres. Columns are snake_case in SQL, and camelCase outside of this folder.

import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { joinLeadership } from './leaders.ts'
import { PreparingClient } from './prepared.ts'
import type { Database } from './schema.ts'

export type { Database } from './schema.ts'

// Embedded Postgres allows 60; the gateway, an operator's psql and a migration need some of them.
export const POOL_SIZE = 20

type Lead = { epoch: number; onLost: () => void }

/**
 * Connects at the first use. Queries, lock waits and idle transactions have timeouts. With a lead, these connections
 * read and write nothing once another server has taken it over (leaders.ts).
 */
export function openDatabase(
  url: string,
  log: Log,
  lead: Lead | null = null,
  maxConnections = POOL_SIZE,
): Kysely<Database> {
  const pool = new pg.Pool({
    connectionString: url,
    max: maxConnections,
    connectionTimeoutMillis: 10 * SECOND,
    statement_timeout: 30 * SECOND,
    lock_timeout: 10 * SECOND,
    idle_in_transaction_session_timeout: 60 * SECOND,
    types: { getTypeParser },
    Client: PreparingClient,
    ...(lead ? { verify: (client, done) => void verify(lead, client, done) } : {}),
  })
  // A restart of Postgres breaks idle and active connections. Without listeners for both that would end this process;
  // the pool replaces them, and only the query in progress fails.
  const onBroken = (error: Error) => log.warn({ error: error.message }, 'database connection lost')
  pool.on('error', onBroken)
  pool.on('connect', (client) => void client.on('error', onBroken))
  return new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
}

/** The check that the pool runs on each new connection. */
async function verify(lead: Lead, client: pg.ClientBase, done: (error?: Error) => void): Promise<void> {
  let failure: Error | undefined
  try {
    await joinLeadership(client, lead)
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error))
  }
  done(failure)
}

/** int8 is parsed as bigint, because money must not become a float. */
export const getTypeParser: typeof pg.types.getTypeParser = (oid: number, format?: 'text' | 'binary') =>
  oid === pg.types.builtins.INT8 ? BigInt : pg.types.getTypeParser(oid, format)
