// The connection of a process to a real Postgres. On request, the connection breaks at a query, or the whole process
// dies there: before the query, or after it, when the effect stays and only the answer is lost.

import { Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely'
import type pg from 'pg'
import type { Database } from '../../../src/store/db.ts'

export type Trouble = { what: 'dies' | 'breaks'; side: 'before' | 'after'; queries: number }

export type Connections = {
  db: Kysely<Database>
  /** Brings the fault at the query after this many others. */
  bring: (trouble: Trouble) => void
  heal: () => void
  /** Resolves when no query is running. */
  quiet: () => Promise<void>
  /** Whether no query is running, and nothing is left of a process that died. */
  isQuiet: () => boolean
  /** Rolls back what the process had begun. It gets no answers any more. */
  cut: () => Promise<void>
}

type Session = { client: pg.PoolClient; isAsking: boolean; isBroken: boolean }

export function createConnections(pool: pg.Pool, life: AbortController): Connections {
  const sessions = new Set<Session>()
  let busy = 0
  let trouble: Trouble | null = null
  let waiting: (() => void)[] = []

  async function counted<T>(work: Promise<T>): Promise<T> {
    busy += 1
    try {
      return await work
    } finally {
      busy -= 1
      if (busy === 0) {
        for (const tell of waiting) tell()
        waiting = []
      }
    }
  }

  function isDue(side: Trouble['side']): boolean {
    return trouble !== null && trouble.queries === 0 && trouble.side === side
  }

  async function strike(session: Session): Promise<never> {
    const { what } = trouble ?? { what: 'breaks' }
    trouble = null
    if (what === 'dies') {
      life.abort(new Error('the process died'))
      return await never()
    }
    session.isBroken = true
    await counted(session.client.query('rollback'))
    throw connectionLost()
  }

  async function ask(session: Session, text: string, values: readonly unknown[]): Promise<pg.QueryResult> {
    if (life.signal.aborted) return await never()
    if (session.isBroken) throw connectionLost()
    if (isDue('before')) return await strike(session)
    session.isAsking = true
    const result = await counted(session.client.query(text, [...values])).finally(() => {
      session.isAsking = false
    })
    if (life.signal.aborted) return await never()
    if (isDue('after')) return await strike(session)
    if (trouble) trouble.queries = Math.max(0, trouble.queries - 1)
    return result
  }

  async function connect(): Promise<PostgresPoolClient> {
    if (life.signal.aborted) return await never()
    const session: Session = { client: await counted(pool.connect()), isAsking: false, isBroken: false }
    sessions.add(session)
    return {
      query: ((text: string, values: readonly unknown[]) =>
        ask(session, text, values)) as unknown as PostgresPoolClient['query'],
      release: () => {
        if (sessions.delete(session)) session.client.release()
      },
    }
  }

  const quiet = async () => {
    if (busy > 0) await new Promise<void>((resolve) => waiting.push(resolve))
  }
  return {
    db: new Kysely<Database>({
      dialect: new PostgresDialect({ pool: { connect, end: async () => {}, options: {} } }),
    }),
    bring: (next) => {
      trouble = { ...next }
    },
    heal: () => {
      trouble = null
    },
    quiet,
    isQuiet: () => busy === 0 && (sessions.size === 0 || !life.signal.aborted),
    cut: async () => {
      while (sessions.size > 0 || busy > 0) {
        for (const session of sessions) {
          // A running query may wait for a lock that another of these sessions holds.
          if (session.isAsking) continue
          sessions.delete(session)
          await session.client.query('rollback')
          session.client.release()
        }
        await new Promise(setImmediate)
      }
    },
  }
}

/** Never resolves, because the process that waits is dead. */
async function never(): Promise<never> {
  return await new Promise<never>(() => {})
}

function connectionLost(): Error {
  return new Error('Connection terminated unexpectedly')
}
