// Fencing (reliability F16): of several servers on one database the newest alone can write and act, wherever the
// others were when it took over.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../test/support/domain.ts'
import { findUnsettled } from '../../test/support/invariants.ts'
import { type App, createApp } from '../app.ts'
import { execInUnit } from '../domain/units/exec.ts'
import { reconcileMachines, recover } from '../domain/units/lifecycle/reconcile.ts'
import { openEpochs } from '../engine/epochs.ts'
import { askEngineEpoch, connectEngine } from '../engine/ipc/client.ts'
import { serveEngine } from '../engine/ipc/server.ts'
import { SECOND, systemClock } from '../lib/clock.ts'
import { silentLog } from '../lib/log.ts'
import { startJobs } from '../jobs.ts'
import { type Database, openDatabase } from '../store/db.ts'
import { findLeader } from '../store/leaders.ts'
import { isOutage } from '../store/outage.ts'
import { holdLeadership, acquireLeadership } from './leadership.ts'

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

/** What the role does as it starts (server.ts). */
async function startServer(holder = 'abcd boot'): Promise<Server> {
  const above = await askEngineEpoch(socketPath)
  const epoch = await acquireLeadership(domain.app.db, { holder, above, clock: domain.clock })
  const onLost = vi.fn<() => void>()
  const db = openDatabase(domain.databaseUrl, silentLog, { epoch, onLost })
  onTestFinished(async () => await db.destroy())
  const engine = connectEngine({ socketPath, epoch, onLost })
  return { app: createApp({ ...domain.app, clock: domain.clock, db, engine }), db, epoch, onLost }
}

const failureOf = async (work: Promise<unknown>): Promise<unknown> =>
  await work.then(
    () => null,
    (error: unknown) => error,
  )

describe('a server that another one has taken over from', () => {
  it('can write and act no more, and neither can a transaction that was open', async () => {
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
    expect(await failureOf(old.app.engine.recover([]))).toMatchObject({ kind: 'stale_caller' })
    expect(await failureOf(reconcileMachines(old.app))).toMatchObject({ kind: 'stale_caller' })
    const exec = { cmd: ['true'], timeoutMs: SECOND }
    expect(isOutage(await failureOf(execInUnit(old.app, caller, unit.id, exec)))).toBe(true)

    expect(next.onLost).not.toHaveBeenCalled()
    expect(await next.db.selectFrom('units').select(['name', 'state']).execute()).toEqual([
      { name: 'web', state: 'running' },
    ])
    expect(await findUnsettled(next.app, domain.engine)).toEqual([])
  })

  it('does nothing with what it had read before, in any of its loops', async () => {
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

  it('notices by itself when nobody asks it for anything', async () => {
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

  it('whatever it wrote before is there, and whatever is not there never comes, under load', async () => {
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

describe('the lead', () => {
  const take = (holder: string, above = 0) =>
    acquireLeadership(domain.app.db, {
      holder,
      above,
      clock: { ...systemClock, sleep: async () => void (await renew()) },
    })
  const silentFor = async (seconds: number) =>
    await sql`update leaders set renewed_at = now() - ${seconds} * interval '1 second'`.execute(domain.app.db)
  /** What the other Berth does while somebody looks on. */
  let renew: () => Promise<unknown> = async () => {}
  beforeEach(() => {
    renew = async () => {}
  })

  it('goes to a server of the same host and directory at once', async () => {
    expect([await take('abcd boot'), await take('abcd boot')]).toEqual([1, 2])
  })

  it('of a Berth that is alive is not given to another one, which is told why', async () => {
    await take('abcd boot')
    await silentFor(4)
    renew = () => silentFor(0)
    await expect(take('efgh boot')).rejects.toThrow(/Another Berth \(its instance is abcd\).*DATABASE_URL/)
    expect(await findLeader(domain.app.db)).toMatchObject({ epoch: 1, holder: 'abcd boot' })
  })

  it('of a Berth that is silent goes to another one, as that of a host that was started anew', async () => {
    await take('abcd boot')
    renew = () => silentFor(15)
    expect(await take('efgh boot')).toBe(2)
    await silentFor(15)
    expect(await take('efgh later')).toBe(3)
  })

  it('that was given back is free', async () => {
    const epoch = await take('abcd boot')
    await holdLeadership(domain.app.db, {
      epoch,
      onLost: () => {},
      clock: domain.clock,
      log: silentLog,
    }).stop()
    expect(await take('efgh boot')).toBe(2)
  })

  it('is later than anything the engine has seen, also over a database that was restored', async () => {
    await take('abcd boot')
    expect(await take('abcd boot', 41)).toBe(42)
  })

  it('is given to each of many in turn, and they agree who was last', async () => {
    const epochs = await Promise.all(Array.from({ length: 8 }, () => take('abcd boot')))
    expect(epochs.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect((await findLeader(domain.app.db))?.epoch).toBe(8)
  })
})
