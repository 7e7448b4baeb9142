// Fencing (reliability F16): when several servers use one database, only the newest can write and act, whatever the
// others were doing when it took over.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createTestClock } from '../../test/support/clock.ts'
import { createTestDomain, makeUnit, type TestDomain } from '../../test/support/domain.ts'
import { findUnsettled } from '../../test/support/invariants.ts'
import { type App, createApp } from '../app.ts'
import { createFleet } from '../engine/fleet.ts'
import { execInUnit } from '../domain/units/exec.ts'
import { reconcileMachines, recover } from '../domain/units/reconcile.ts'
import { openEpochs } from '../engine/epochs.ts'
import { askEngineEpoch, connectEngine } from '../engine/ipc/client.ts'
import { serveEngine } from '../engine/ipc/server.ts'
import { SECOND, systemClock } from '../lib/clock.ts'
import { silentLog } from '../lib/log.ts'
import { startJobs } from '../jobs.ts'
import { type Database, openDatabase } from '../store/db.ts'
import { findLeader, takeLeadership } from '../store/leaders.ts'
import { isOutage } from '../store/outage.ts'
import { acquireLeadership, awaitLeadership, holderOf, holdLeadership } from './leadership.ts'

let domain: TestDomain
let socketPath: string
beforeEach(async () => {
  domain = await createTestDomain()
  const dir = await mkdtemp(join(tmpdir(), 'berth-lead-'))
  socketPath = join(dir, 'engine.sock')
  const served = await serveEngine({
    engine: domain.engine,
    epochs: await openEpochs(join(dir, 'epoch')),
    socketPath,
    socketGid: process.getegid?.() ?? 0,
    log: silentLog,
  })
  onTestFinished(async () => {
    await served.close()
    await rm(dir, { recursive: true })
  })
})
afterEach(async () => await domain.close())

type Server = { app: App; db: Kysely<Database>; epoch: number; onLost: ReturnType<typeof vi.fn<() => void>> }

/** Does what server.ts does at start. */
async function startServer(holder = 'abcd boot'): Promise<Server> {
  const above = await askEngineEpoch({ socketPath })
  const epoch = await acquireLeadership(domain.app.db, { holder, above, clock: domain.clock })
  const onLost = vi.fn<() => void>()
  const db = openDatabase(domain.databaseUrl, silentLog, { epoch, onLost })
  onTestFinished(async () => await db.destroy())
  const engine = connectEngine({ address: { socketPath }, epoch, onLost })
  const fleet = createFleet({ ...domain.app.fleet.local(), engine })
  return { app: createApp({ ...domain.app, clock: domain.clock, db, fleet }), db, epoch, onLost }
}

const failureOf = async (work: Promise<unknown>): Promise<unknown> =>
  await work.then(
    () => null,
    (error: unknown) => error,
  )

describe('a server that has lost its leadership', () => {
  it('can neither write nor act, not even in an open transaction', async () => {
    const caller = await domain.makeCaller()
    const old = await startServer()
    const unit = await makeUnit(old.app, caller, { sleep: 'never' })
    const setName = (db: Kysely<Database>) =>
      db.updateTable('units').set({ name: 'stale' }).where('id', '=', unit.id).execute()
    const halfway = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const open = failureOf(
      old.db.transaction().execute(async (db) => {
        await setName(db)
        halfway.resolve()
        await goOn.promise
      }),
    )
    await halfway.promise

    const next = await startServer()
    expect(next.epoch).toBe(old.epoch + 1)
    await recover(next.app)
    goOn.resolve()
    expect(isOutage(await open)).toBe(true)
    for (let tries = 0; tries < 5; tries++) expect(isOutage(await failureOf(setName(old.db)))).toBe(true)
    expect(old.onLost).toHaveBeenCalled()
    expect(await failureOf(old.app.fleet.local().engine.recover([]))).toMatchObject({ kind: 'stale_caller' })
    expect(await failureOf(reconcileMachines(old.app))).toMatchObject({ kind: 'stale_caller' })
    const exec = { cmd: ['true'], timeoutMs: SECOND }
    expect(isOutage(await failureOf(execInUnit(old.app, caller, unit.id, exec)))).toBe(true)

    expect(next.onLost).not.toHaveBeenCalled()
    expect(await next.db.selectFrom('units').select(['name', 'state']).execute()).toEqual([
      { name: 'web', state: 'running' },
    ])
    expect(await findUnsettled(next.app, domain.engine)).toEqual([])
  })

  it('does not act on data it has read before, in any of its jobs', async () => {
    const caller = await domain.makeCaller()
    const old = await startServer()
    await makeUnit(old.app, caller, { sleep: '1m' })
    const loops = startJobs(old.app)
    const next = await startServer()
    await makeUnit(next.app, caller, { name: 'two', sleep: 'never' })
    const calls = domain.engine.calls.length
    const before = await next.db.selectFrom('units').selectAll().orderBy('id').execute()
    for (let seconds = 0; seconds < 300; seconds++) {
      domain.clock.advance(SECOND)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await vi.waitFor(() => expect(old.onLost).toHaveBeenCalled())
    await loops.stop()
    expect(await next.db.selectFrom('units').selectAll().orderBy('id').execute()).toEqual(before)
    expect(domain.engine.calls).toHaveLength(calls)
  })

  it('notices the loss on its own even without requests', async () => {
    const old = await startServer()
    const hold = { epoch: old.epoch, onLost: old.onLost, clock: domain.clock, log: silentLog }
    const holding = holdLeadership(old.db, hold)
    const next = await startServer()
    await vi.waitFor(() => {
      domain.clock.advance(SECOND)
      expect(old.onLost).toHaveBeenCalled()
    })
    await holding.stop()
    expect(await findLeader(next.db)).toMatchObject({ epoch: next.epoch, holder: 'abcd boot' })
  })

  it('has completed its writes or never will: none appears later, under load', async () => {
    const old = await startServer()
    await sql`create table marks (n integer)`.execute(domain.app.db)
    const answered = new Set<number>()
    const writes = Array.from({ length: 400 }, async (_, n) => {
      const write = sql`insert into marks values (${n})`.execute(old.db)
      await write.then(
        () => answered.add(n),
        () => {},
      )
    })
    await Promise.race(writes)
    const next = await startServer()
    const read = async () => {
      const { rows } = await sql<{ n: number }>`select n from marks order by n`.execute(next.db)
      return rows.map(({ n }) => n)
    }
    const then = await read()
    await Promise.all(writes)
    expect(await read()).toEqual(then)
    expect(then).toEqual(expect.arrayContaining([...answered]))
  })
})

describe('leadership', () => {
  const take = (holder: string, above = 0) =>
    acquireLeadership(domain.app.db, {
      holder,
      above,
      clock: { ...systemClock, sleep: async () => void (await renew()) },
    })
  const silentFor = async (seconds: number) =>
    await sql`update leaders set renewed_at = now() - ${seconds} * interval '1 second'`.execute(domain.app.db)
  /** What the other Berth does while its silence is observed. */
  let renew: () => Promise<unknown> = async () => {}
  beforeEach(() => {
    renew = async () => {}
  })

  it('is given at once to a server of the same host and data directory', async () => {
    expect([await take('abcd boot'), await take('abcd boot')]).toEqual([1, 2])
  })

  it('of a live Berth is refused to another one with an explanation', async () => {
    await take('abcd boot')
    await silentFor(4)
    renew = () => silentFor(0)
    await expect(take('efgh boot')).rejects.toThrow(/Another Berth \(its instance is abcd\).*DATABASE_URL/)
    expect(await findLeader(domain.app.db)).toMatchObject({ epoch: 1, holder: 'abcd boot' })
  })

  it('of a silent Berth is given to another one, also after a restart of the host', async () => {
    await take('abcd boot')
    renew = () => silentFor(15)
    expect(await take('efgh boot')).toBe(2)
    await silentFor(15)
    expect(await take('efgh later')).toBe(3)
  })

  it('that was released is available at once', async () => {
    const epoch = await take('abcd boot')
    await holdLeadership(domain.app.db, {
      epoch,
      onLost: () => {},
      clock: domain.clock,
      log: silentLog,
    }).stop()
    expect(await take('efgh boot')).toBe(2)
  })

  it('gets an epoch above all that the engine has seen, even with a restored database', async () => {
    await take('abcd boot')
    expect(await take('abcd boot', 41)).toBe(42)
  })

  it('is given to concurrent servers one after the other, and the last one is recorded', async () => {
    const epochs = await Promise.all(Array.from({ length: 8 }, () => take('abcd boot')))
    expect(epochs.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect((await findLeader(domain.app.db))?.epoch).toBe(8)
  })
})

describe('of several servers, one', () => {
  const at = (port: number) => ({ host: '10.0.0.1', port })
  const holder = (instance: string, port: number) => holderOf({ instance, boot: 'boot', at: at(port) })
  const lead = async (who: string) => {
    const found = await findLeader(domain.app.db)
    return await takeLeadership(domain.app.db, { found, above: 0, holder: who })
  }
  const renew = async () =>
    await sql`update leaders set renewed_at = clock_timestamp()`.execute(domain.app.db)

  /** Waits for the lead, and says after which looks it has it. `atLook`: what happens before each, which is a quarter of a second. */
  async function waitAs(instance: string, atLook: (look: number) => Promise<unknown>, looks = 80) {
    const stop = new AbortController()
    let look = 0
    const leaders = new Set<string>()
    // How long its statements take on a busy machine does not count.
    let passedMs = 0
    const waiting = awaitLeadership(domain.app.db, {
      holder: holder(instance, 2),
      clock: {
        ...createTestClock(),
        monotonicMs: () => passedMs,
        sleep: async (ms) => {
          passedMs += ms
          await atLook(++look)
          if (look >= looks) stop.abort(new Error('waited'))
        },
      },
      log: silentLog,
      signal: stop.signal,
      onLeader: (leader) => void leaders.add(JSON.stringify(leader)),
    })
    const epoch = await waiting.catch(() => null)
    return { epoch, look, leaders: [...leaders].map((each) => JSON.parse(each) as unknown) }
  }

  it('waits while another one renews, and says where that is', async () => {
    await lead(holder('abcd', 1))
    expect(await waitAs('efgh', renew)).toEqual({ epoch: null, look: 80, leaders: [at(1)] })
  })

  it('takes over two and a half seconds after the last renewal, by its own clock alone', async () => {
    await lead(holder('abcd', 1))
    await sql`update leaders set renewed_at = now() + interval '1 hour'`.execute(domain.app.db)
    expect(await waitAs('efgh', async () => {})).toMatchObject({ epoch: 2, look: 10 })
  })

  it('takes over at once what was released, and what it has led itself', async () => {
    await lead(holder('abcd', 1))
    await sql`update leaders set holder = null`.execute(domain.app.db)
    expect(await waitAs('efgh', async () => {})).toMatchObject({ epoch: 2, look: 0 })
    expect(await waitAs('efgh', async () => {})).toMatchObject({ epoch: 3, look: 0 })
  })

  it('gives one that thinks it is the only server its fifteen seconds', async () => {
    await lead('abcd boot')
    const waited = await waitAs('efgh', async () => {})
    expect(waited).toMatchObject({ epoch: 2, leaders: [null] })
    expect(waited.look).toBeGreaterThanOrEqual(60)
  })

  it('counts no time in which the database could not be read', async () => {
    await lead(holder('abcd', 1))
    const away = async (look: number) => {
      if (look === 8) await sql`alter table leaders rename to gone`.execute(domain.app.db)
      if (look === 9) await sql`alter table gone rename to leaders`.execute(domain.app.db)
    }
    expect(await waitAs('efgh', away)).toMatchObject({ epoch: 2, look: 19 })
  })

  it('does not lead a database that a newer release has used', async () => {
    await sql`insert into kysely_migration (name, timestamp) values ('9999-later', '')`.execute(domain.app.db)
    expect(await waitAs('efgh', async () => {}, 4)).toMatchObject({ epoch: null, look: 4 })
  })
})
