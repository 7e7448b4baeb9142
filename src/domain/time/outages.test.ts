// The server, its engine, its database or the whole host is down for a while (reliability F9, B4). Time in which no
// machine is known to have run is not billed, and no unit falls asleep because it could not be used.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, eventually, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import { openPostgresProxy } from '../../../test/support/postgres-proxy.ts'
import { type App, createApp } from '../../app.ts'
import { startJobs } from '../../jobs.ts'
import { openDatabase } from '../../store/db.ts'
import { silentLog } from '../../lib/log.ts'
import type { Caller } from '../credentials/caller.ts'
import { getUnit } from '../units/get.ts'
import { stopUnit } from '../units/stop.ts'
import { sleepIdleUnits } from '../units/activity/idle.ts'
import { reconcileMachines, recover } from '../units/reconcile.ts'
import { noteOutages } from './heartbeat.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

let domain: TestDomain
let caller: Caller
/** The process that serves. A restart replaces it. */
let app: App
beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  app = domain.restarted()
  caller = await domain.makeCaller()
})
afterEach(async () => {
  await domain.app.db.deleteFrom('units').execute()
  await domain.app.db.deleteFrom('heartbeats').execute()
  await domain.engine.recover([])
})
afterAll(async () => await domain.close())

/** A small unit costs half a cent an hour. Tests take real milliseconds, which are billed too. */
async function billedMinutes(id: string): Promise<number> {
  const { costCentsSoFar } = await getUnit(app, caller, id)
  return (costCentsSoFar / 0.5) * 60
}
const sleepsInMs = async (id: string) =>
  Date.parse((await getUnit(app, caller, id)).sleepsAt ?? '') - app.clock.now().getTime()

async function restart(): Promise<void> {
  app = domain.restarted()
  await recover(app)
}

/** The host goes down with all its machines, and boots after a while. */
function rebootHost(downMs: number): void {
  for (const { id, state } of domain.engine.machines()) if (state === 'running') domain.engine.loseMachine(id)
  domain.clock.advance(downMs)
  domain.clock.reboot()
}

describe('a run whose end was not observed', () => {
  it('is billed up to the last heartbeat, however long the host was down', async () => {
    const unit = await makeUnit(app, caller, { sleep: 'never' })
    domain.clock.advance(10 * MINUTE)
    await reconcileMachines(app)
    domain.clock.advance(3 * SECOND)
    rebootHost(2 * HOUR)
    await restart()
    expect(await getUnit(app, caller, unit.id)).toMatchObject({
      state: 'sleeping',
      stoppedReason: 'provider',
      sleepsAt: null,
      lastExit: null,
    })
    expect(await billedMinutes(unit.id)).toBeCloseTo(10, 1)
    domain.clock.advance(HOUR)
    expect(await billedMinutes(unit.id)).toBeCloseTo(10, 1)
  })

  it('costs nothing when it began after the last heartbeat', async () => {
    await reconcileMachines(app)
    domain.clock.advance(2 * SECOND)
    const unit = await makeUnit(app, caller)
    rebootHost(HOUR)
    await restart()
    expect((await getUnit(app, caller, unit.id)).state).toBe('sleeping')
    expect(await billedMinutes(unit.id)).toBe(0)
  })

  it('is billed up to the heartbeat before the one that finds it dead', async () => {
    const unit = await makeUnit(app, caller, { sleep: 'never' })
    domain.clock.advance(10 * MINUTE)
    await reconcileMachines(app)
    domain.clock.advance(10 * MINUTE)
    await domain.engine.destroy(unit.id)
    await reconcileMachines(app)
    expect((await getUnit(app, caller, unit.id)).state).toBe('sleeping')
    expect(await billedMinutes(unit.id)).toBeCloseTo(10, 1)
  })

  it('is billed up to the last heartbeat, also when a stop ends it', async () => {
    const [dead, alive] = [await makeUnit(app, caller, { sleep: 'never' }), await makeUnit(app, caller)]
    domain.clock.advance(10 * MINUTE)
    await reconcileMachines(app)
    domain.clock.advance(10 * SECOND)
    await stopUnit(app, caller, alive.id)
    expect(await billedMinutes(alive.id)).toBeCloseTo(10 + 1 / 6, 1)
    domain.engine.loseMachine(dead.id)
    domain.clock.advance(HOUR)
    await stopUnit(app, caller, dead.id)
    expect(await billedMinutes(dead.id)).toBeCloseTo(10, 1)
  })

  it('costs nothing when its machine is lost before the next heartbeat', async () => {
    await reconcileMachines(app)
    const unit = await makeUnit(app, caller)
    await domain.engine.destroy(unit.id)
    for (let seconds = 0; seconds < 15; seconds += 5) {
      domain.clock.advance(5 * SECOND)
      await reconcileMachines(app)
    }
    expect((await getUnit(app, caller, unit.id)).state).toBe('sleeping')
    expect(await billedMinutes(unit.id)).toBe(0)
  })
})

describe('a machine that ran while the server was down', () => {
  it('is billed for the whole time and still runs', async () => {
    const unit = await makeUnit(app, caller, { sleep: 'never' })
    await reconcileMachines(app)
    domain.clock.advance(2 * HOUR)
    await restart()
    expect((await getUnit(app, caller, unit.id)).state).toBe('running')
    expect(await billedMinutes(unit.id)).toBeCloseTo(120, 1)
  })

  it('is billed up to its exit', async () => {
    const unit = await makeUnit(app, caller, { sleep: 'never' })
    await reconcileMachines(app)
    domain.clock.advance(HOUR)
    domain.engine.endProcess(unit.id, { code: 3 })
    domain.clock.advance(HOUR)
    await restart()
    expect(await getUnit(app, caller, unit.id)).toMatchObject({
      state: 'stopped',
      stoppedReason: 'exited',
      lastExit: { code: 3 },
    })
    expect(await billedMinutes(unit.id)).toBeCloseTo(60, 1)
  })
})

describe('the idle time of a unit', () => {
  it('does not count while the server is down', async () => {
    const unit = await makeUnit(app, caller, { sleep: '1h' })
    domain.clock.advance(20 * MINUTE)
    await reconcileMachines(app)
    domain.clock.advance(3 * HOUR)
    await restart()
    await sleepIdleUnits(app)
    const now = await getUnit(app, caller, unit.id)
    expect(now).toMatchObject({ state: 'running', lastUsedAt: unit.lastUsedAt })
    expect((await sleepsInMs(unit.id)) / MINUTE).toBeCloseTo(40, 1)
    domain.clock.advance(41 * MINUTE)
    await sleepIdleUnits(app)
    await eventually(app, caller, unit.id, 'sleeping')
  })

  it('leaves a unit that was about to sleep half a minute to be used after a restart', async () => {
    const unit = await makeUnit(app, caller, { sleep: '1h' })
    domain.clock.advance(HOUR - SECOND)
    await reconcileMachines(app)
    domain.clock.advance(10 * SECOND)
    await restart()
    expect((await sleepsInMs(unit.id)) / SECOND).toBeCloseTo(30, 0)
  })

  it('is never extended beyond the window', async () => {
    const short = await makeUnit(app, caller, { sleep: '1m' })
    const always = await makeUnit(app, caller, { name: 'always', sleep: 'never' })
    await reconcileMachines(app)
    for (let restarts = 0; restarts < 3; restarts++) {
      domain.clock.advance(MINUTE)
      await restart()
    }
    expect(await sleepsInMs(short.id)).toBeLessThanOrEqual(MINUTE)
    expect((await getUnit(app, caller, always.id)).sleepsAt).toBeNull()
  })

  it('does not expire before the first heartbeat after an outage', async () => {
    const unit = await makeUnit(app, caller, { sleep: '1h' })
    await reconcileMachines(app)
    noteOutages(app)
    domain.clock.advance(2 * HOUR)
    await sleepIdleUnits(app)
    expect((await getUnit(app, caller, unit.id)).state).toBe('running')
    await reconcileMachines(app)
    expect((await sleepsInMs(unit.id)) / MINUTE).toBeCloseTo(60, 1)
  })

  it('is not extended for a unit that sleeps', async () => {
    const unit = await makeUnit(app, caller, { sleep: '1m' })
    await reconcileMachines(app)
    domain.clock.advance(2 * MINUTE)
    await sleepIdleUnits(app)
    await eventually(app, caller, unit.id, 'sleeping')
    await restart()
    expect(await getUnit(app, caller, unit.id)).toMatchObject({ state: 'sleeping', sleepsAt: null })
  })
})

describe('an outage in which the server keeps running', () => {
  const outages = [
    {
      what: 'the database',
      begin: async () => {
        const proxy = await openPostgresProxy(domain.databaseUrl)
        return {
          url: proxy.url,
          away: () => proxy.shut(),
          back: () => proxy.open(),
          close: () => proxy.close(),
        }
      },
    },
    {
      what: 'the engine',
      begin: async () => ({
        url: domain.databaseUrl,
        away: () => domain.engine.fail('list', 'engine_away', { times: Number.MAX_SAFE_INTEGER }),
        back: async () => domain.engine.heal('list'),
        close: async () => {},
      }),
    },
  ]

  it.each(outages)('of $what puts no unit to sleep', async ({ begin }) => {
    const { url, away, back, close } = await begin()
    app = createApp({ ...app, clock: domain.clock, db: openDatabase(url, silentLog) })
    const unit = await makeUnit(app, caller, { sleep: '1h' })
    await reconcileMachines(app)
    const loops = startJobs(app)
    away()
    await expect
      .poll(() => {
        domain.clock.advance(SECOND)
        return app.outages.size
      })
      .toBe(1)
    domain.clock.advance(2 * HOUR)
    await back()
    await expect
      .poll(() => {
        domain.clock.advance(SECOND)
        return app.outages.size
      })
      .toBe(0)
    expect((await getUnit(app, caller, unit.id)).state).toBe('running')
    expect((await sleepsInMs(unit.id)) / MINUTE).toBeGreaterThan(55)

    domain.clock.advance(HOUR)
    await eventually(app, caller, unit.id, 'sleeping')
    await loops.stop()
    await app.db.destroy()
    await close()
  })
})
