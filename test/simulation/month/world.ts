// The world of a month: two servers, one engine, one Postgres, and a clock that advances only while nothing moves. So
// everything happens at a known time.

import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { pino } from 'pino'
import { AppError } from '../../../src/contract/errors.ts'
import { createFakeEngine, type FakeEngine } from '../../support/fake-engine/fake-engine.ts'
import { SECOND } from '../../../src/lib/clock.ts'
import { getTypeParser } from '../../../src/store/db.ts'
import { isOutage } from '../../../src/store/outage.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import { type Account, createAccount, type Standing } from './account.ts'
import { createMonthClock, type MonthClock } from './clock.ts'
import { silentLog } from '../../../src/lib/log.ts'
import { openDatabase } from '../../../src/store/db.ts'
import { firstHost } from '../../support/hosts.ts'
import { begin, createServer, type Server } from './server.ts'

export type World = {
  clock: MonthClock
  engine: FakeEngine
  account: Account
  pool: pg.Pool
  servers: Server[]
  /** Faults that were found. */
  faults: string[]
  /** How often each kind of event happened. */
  counts: Map<string, number>
  count: (what: string) => void
  /**
   * Waits until each piece of work has ended or its server has died, and nothing moves. The clock advances only where
   * a process waits for it.
   */
  settle: (works: Work[]) => Promise<void>
  passTo: (elapsedMs: number) => Promise<void>
  kill: (server: Server) => void
  /** Restarts servers that died. */
  restart: () => Promise<void>
  close: () => Promise<void>
}

export type Work = { server: Server; what: string; work: () => Promise<unknown> }

/** Turns of the event loop without news, after which there will be none. */
const QUIET_TURNS = 4
/** By then a process may have died that another one waits for. */
const LOOK_AGAIN_MS = 10
/** No wait for anything that exists takes this long. */
const STUCK_AFTER_MS = 3_600 * SECOND
const RESTART_MS = SECOND / 2

export async function createWorld(socketDir?: string): Promise<World> {
  const database = await createTestDatabase(socketDir)
  const pool = new pg.Pool({ connectionString: database.url, max: 40, types: { getTypeParser } })
  // When the database is dropped at the end, open connections report an error.
  pool.on('error', () => {})
  pool.on('connect', (client) => void client.on('error', () => {}))
  const clock = createMonthClock()
  const host = new AbortController()
  const engine = createFakeEngine({ clock: clock.for(host.signal) })
  engine.setCapacity({ cpus: 64, availableMemoryMb: 1_000_000 })
  const account = createAccount(clock.elapsedMs)
  const faults: string[] = []
  const counts = new Map<string, number>()
  const count = (what: string) => void counts.set(what, (counts.get(what) ?? 0) + 1)
  const log = pino(
    { level: 'error' },
    {
      write: (line: string) => {
        if (line.includes('"alarm"')) faults.push(line.trim())
      },
    },
  )
  const db = openDatabase(database.url, silentLog)
  const first = await firstHost(db, engine)
  await db.destroy()
  const create = () => createServer(pool, first, engine, clock, log)
  const servers = [create(), create()]
  const gone = new Set<string>()

  async function look(): Promise<void> {
    const { rows } = await pool.query<Standing>(
      `select id, team_id as "teamId", state, revision, size, coalesce((spec -> 'volume' ->> 'gb')::int, 0) as gb
       from units where id <> all ($1)`,
      [[...gone]],
    )
    account.see(rows)
    for (const { id, state } of rows) if (state === 'destroyed') gone.add(id)
    const beats = await pool.query<{ at: Date }>(`select at from heartbeats where id <> 'service'`)
    const [beat] = beats.rows
    if (beat) account.beat(clock.elapsedAt(beat.at))
  }

  async function stillness(): Promise<void> {
    for (let turns = 0; turns < QUIET_TURNS; turns++) {
      const busy = servers.filter(({ connections }) => !connections.isQuiet())
      // Processes that died come first, because others may wait for their locks.
      for (const { life, connections } of busy) if (life.signal.aborted) await connections.cut()
      const alive = busy.filter(({ life }) => !life.signal.aborted)
      if (alive.length > 0)
        await Promise.race([...alive.map(({ connections }) => connections.quiet()), delay(LOOK_AGAIN_MS)])
      if (busy.length > 0) turns = -1
      await new Promise(setImmediate)
    }
  }

  async function settle(works: Work[]): Promise<void> {
    let left = works.length
    for (const { server, what, work } of works) {
      const { signal } = server.life
      const died = new Promise<void>((resolve) => {
        if (signal.aborted) resolve()
        signal.addEventListener('abort', () => resolve(), { once: true })
      })
      const ended = work().catch((error: unknown) => {
        if (!isExpected(error)) faults.push(`${what} fails with a bug: ${String((error as Error).stack)}`)
        count(`${what} refused`)
      })
      void Promise.race([died, ended]).then(() => (left -= 1))
    }
    const stuckAtMs = clock.elapsedMs() + STUCK_AFTER_MS
    for (;;) {
      await stillness()
      await look()
      if (left === 0) return
      if (clock.elapsedMs() > stuckAtMs || clock.nextMs() === Number.POSITIVE_INFINITY)
        throw new Error(`nothing moves: ${works.map(({ what }) => what).join(', ')}`)
      clock.goOn(clock.nextMs())
    }
  }

  async function passTo(elapsedMs: number): Promise<void> {
    while (clock.elapsedMs() < elapsedMs) {
      clock.goOn(elapsedMs)
      await settle([])
    }
  }

  return {
    clock,
    engine,
    account,
    pool,
    servers,
    faults,
    counts,
    count,
    settle,
    passTo,
    kill: ({ life }) => life.abort(new Error('the process died')),
    restart: async () => {
      for (const [index, { life }] of servers.entries()) {
        if (!life.signal.aborted) continue
        await passTo(clock.elapsedMs() + RESTART_MS)
        const server = create()
        servers[index] = server
        await settle([{ server, what: 'a beginning', work: () => begin(server) }])
      }
    },
    close: async () => {
      for (const { life, connections } of servers) {
        life.abort()
        await connections.cut()
      }
      await pool.end()
      await database.drop()
    },
  }
}

/** A refusal, or a part that was down. */
function isExpected(error: unknown): boolean {
  return (
    error instanceof AppError || isOutage(error) || (error instanceof Error && error.name === 'EngineError')
  )
}
