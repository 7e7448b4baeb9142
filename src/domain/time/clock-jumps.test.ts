// The wall clock jumps, and no unit sleeps earlier or later or costs another price for it (reliability F19).

import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, eventually, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import { type App, createApp } from '../../app.ts'
import { silentLog } from '../../lib/log.ts'
import { openDatabase } from '../../store/db.ts'
import { windowEnd } from '../../store/windows.ts'
import type { Caller } from '../credentials/caller.ts'
import { findLiveSession } from '../credentials/sessions.ts'
import { createSignInLink, readSignInLink, signIn } from '../credentials/sign-in.ts'
import { destroyErroredUnits } from '../units/destroy.ts'
import { execInUnit } from '../units/exec.ts'
import { getUnit } from '../units/get.ts'
import { hibernateFrozenUnits, sleepIdleUnits } from '../units/activity/idle.ts'
import { reconcileMachines, recover } from '../units/reconcile.ts'
import { stopUnit } from '../units/stop.ts'
import { adoptClockJump } from './clock-jumps.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

let domain: TestDomain
let caller: Caller
let app: App
beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  app = domain.restarted()
  caller = await domain.makeCaller()
  await reconcileMachines(app)
})
afterEach(async () => {
  await domain.app.db.deleteFrom('units').execute()
  await domain.app.db.deleteFrom('heartbeats').execute()
  await domain.engine.recover([])
})
afterAll(async () => await domain.close())

/** As of a new heartbeat, because no cost is known beyond the last one. */
async function billedMinutes(id: string): Promise<number> {
  await reconcileMachines(app)
  return ((await getUnit(app, caller, id)).costCentsSoFar / 0.5) * 60
}
const minutesToSleep = async (id: string) =>
  (Date.parse((await getUnit(app, caller, id)).sleepsAt ?? '') - app.clock.now().getTime()) / MINUTE

/** Runs the jobs in the worst order: those that act on time before the one that notices a clock jump. */
async function rounds(): Promise<void> {
  await sleepIdleUnits(app)
  await hibernateFrozenUnits(app)
  await destroyErroredUnits(app)
  await reconcileMachines(app)
  await adoptClockJump(app)
}

const jumps = [
  ['an hour forward', HOUR],
  ['an hour back', -HOUR],
  ['a day forward', DAY],
  ['a day back', -DAY],
  ['ten minutes forward, as after a suspend', 10 * MINUTE],
  ['ten seconds back', -10 * SECOND],
] as const

describe.each(jumps)('a clock jump of %s', (_what, jump) => {
  it('lets a unit sleep after exactly its window of idleness', async () => {
    const unit = await makeUnit(app, caller, { sleep: '1h' })
    domain.clock.advance(20 * MINUTE)
    domain.clock.jump(jump)
    await rounds()
    await rounds()
    expect(await minutesToSleep(unit.id)).toBeCloseTo(40, 1)
    domain.clock.advance(39 * MINUTE)
    await rounds()
    expect((await getUnit(app, caller, unit.id)).state).toBe('running')
    domain.clock.advance(MINUTE)
    await rounds()
    await eventually(app, caller, unit.id, 'sleeping')
  })

  it('bills the time before and after it once', async () => {
    const unit = await makeUnit(app, caller, { sleep: 'never' })
    domain.clock.advance(20 * MINUTE)
    domain.clock.jump(jump)
    await rounds()
    expect(await billedMinutes(unit.id)).toBeCloseTo(20, 1)
    domain.clock.advance(10 * MINUTE)
    expect(await billedMinutes(unit.id)).toBeCloseTo(30, 1)
    await stopUnit(app, caller, unit.id)
    domain.clock.advance(HOUR)
    expect(await billedMinutes(unit.id)).toBeCloseTo(30, 1)
  })

  it('does not change uses and ends that come before the jump is noticed', async () => {
    const used = await makeUnit(app, caller, { name: 'used', sleep: '1h' })
    const ended = await makeUnit(app, caller, { name: 'ended', sleep: '1h' })
    domain.clock.advance(20 * MINUTE)
    await reconcileMachines(app)
    domain.clock.jump(jump)
    await execInUnit(app, caller, used.id, { cmd: ['true'], timeoutMs: SECOND })
    await stopUnit(app, caller, ended.id)
    await rounds()
    expect(await minutesToSleep(used.id)).toBeCloseTo(60, 1)
    expect(await billedMinutes(ended.id)).toBeCloseTo(20, 1)
  })

  it('does not bill the creation of a unit', async () => {
    const release = domain.engine.hang('exec')
    const healthcheck = { cmd: ['true'], timeoutMs: 5 * MINUTE, intervalMs: SECOND }
    const unit = await makeUnit(app, caller, { healthcheck, sleep: 'never' }, { wait: false })
    await expect.poll(() => domain.engine.calls.at(-1)?.operation).toBe('exec')
    domain.clock.advance(2 * MINUTE)
    domain.clock.jump(jump)
    await rounds()
    release()
    await eventually(app, caller, unit.id, 'running')
    expect(await billedMinutes(unit.id)).toBeCloseTo(0, 1)
  })

  it('keeps a unit in error for one hour', async () => {
    domain.engine.fail('start', 'start_failed')
    const failed: unknown = await makeUnit(app, caller).catch((error: unknown) => error)
    const { unitId } = (failed as { details: { unitId: string } }).details
    domain.clock.jump(jump)
    await rounds()
    domain.clock.advance(59 * MINUTE)
    await rounds()
    expect((await getUnit(app, caller, unitId)).state).toBe('error')
    domain.clock.advance(2 * MINUTE)
    await rounds()
    await eventually(app, caller, unitId, 'destroyed')
  })

  it('keeps a frozen unit frozen for its time', async () => {
    const unit = await makeUnit(app, caller, { sleep: '1m' })
    domain.clock.advance(61 * SECOND)
    await rounds()
    await eventually(app, caller, unit.id, 'sleeping')
    const isFrozen = () => domain.engine.machines().find(({ id }) => id === unit.id)?.frozen
    domain.clock.jump(jump)
    await rounds()
    domain.clock.advance(9 * MINUTE)
    await rounds()
    expect(isFrozen()).toBe(true)
    domain.clock.advance(MINUTE + SECOND)
    await rounds()
    await expect.poll(isFrozen).toBe(false)
  })

  it('neither shortens nor extends a session or a sign-in link', async () => {
    const email = `${caller.userId}@example.com`
    const { token } = await signIn(app, (await createSignInLink(app, email)).token)
    const link = await createSignInLink(app, email)
    domain.clock.jump(jump)
    await adoptClockJump(app)
    domain.clock.advance(DAY - MINUTE)
    expect(await readSignInLink(app, link.token)).toBe(email)
    domain.clock.advance(2 * MINUTE)
    expect(await readSignInLink(app, link.token)).toBeNull()
    domain.clock.advance(29 * DAY - 2 * MINUTE)
    expect(await findLiveSession(app, token)).not.toBeNull()
    domain.clock.advance(2 * MINUTE)
    expect(await findLiveSession(app, token)).toBeNull()
  })

  it('is noticed by the next process when none runs', async () => {
    const unit = await makeUnit(app, caller, { sleep: '2h' })
    domain.clock.advance(20 * MINUTE)
    await reconcileMachines(app)
    domain.clock.advance(30 * MINUTE)
    domain.clock.jump(jump)
    app = domain.restarted()
    await recover(app)
    await rounds()
    expect(await billedMinutes(unit.id)).toBeCloseTo(50, 1)
    expect(await minutesToSleep(unit.id)).toBeCloseTo(100, 1)
  })

  it('moves the times once, also when several processes notice it', async () => {
    const unit = await makeUnit(app, caller, { sleep: '1h' })
    const other = domain.restarted()
    domain.clock.advance(20 * MINUTE)
    domain.clock.jump(jump)
    await Promise.all([adoptClockJump(app), adoptClockJump(other)])
    expect(await minutesToSleep(unit.id)).toBeCloseTo(40, 1)
    expect(await billedMinutes(unit.id)).toBeCloseTo(20, 1)
  })

  it('is not undone by a process that has not noticed it yet', async () => {
    const unit = await makeUnit(app, caller, { sleep: '1h' })
    const late = domain.restarted()
    domain.clock.jump(jump)
    await adoptClockJump(app)
    await reconcileMachines(late)
    await adoptClockJump(late)
    await reconcileMachines(late)
    await adoptClockJump(app)
    expect(await minutesToSleep(unit.id)).toBeCloseTo(60, 1)
    expect(late.clock.now().getTime() - app.clock.now().getTime()).toBeLessThan(SECOND)
  })
})

describe('the service time', () => {
  it('does not jump while the database is down', async () => {
    const nowhere = openDatabase('postgresql://berth@/berth?host=/nonexistent', silentLog)
    const cut = createApp({ ...app, clock: domain.clock, db: nowhere })
    const before = cut.clock.now().getTime()
    domain.clock.jump(DAY)
    await expect(adoptClockJump(cut)).rejects.toThrow('ENOENT')
    expect(cut.clock.now().getTime() - before).toBeLessThan(MINUTE)
    await nowhere.destroy()
  })

  it('does not run backwards over a reboot', async () => {
    const unit = await makeUnit(app, caller, { sleep: '1h' })
    domain.clock.advance(20 * MINUTE)
    await reconcileMachines(app)
    // The host boots with a clock that was never set.
    domain.clock.reboot()
    domain.clock.jump(-300 * DAY)
    app = domain.restarted()
    await recover(app)
    expect(await billedMinutes(unit.id)).toBeCloseTo(20, 1)
    expect(await minutesToSleep(unit.id)).toBeCloseTo(40, 1)
  })

  it('follows a slow drift of the wall clock without a jump', async () => {
    const unit = await makeUnit(app, caller, { sleep: '1h' })
    for (let minute = 0; minute < 30; minute++) {
      domain.clock.advance(MINUTE)
      domain.clock.jump(500)
      await rounds()
    }
    expect(domain.clock.now().getTime() - app.clock.now().getTime()).toBeLessThan(100)
    const runs = await app.db.selectFrom('meters').selectAll().where('unit_id', '=', unit.id).execute()
    expect(runs).toHaveLength(1)
    expect(await minutesToSleep(unit.id)).toBeCloseTo(30, 0)
  })

  it('counts a day as 24 hours over a change to summer time', async () => {
    const ends = await app.db.connection().execute(async (db) => {
      await sql`set timezone = 'Europe/Berlin'`.execute(db)
      const since = sql<Date>`'2026-03-28T23:30:00+01:00'::timestamptz`
      const { rows } = await sql<{ end: Date }>`select ${windowEnd(since, sql`'1d'`)} as end`.execute(db)
      await sql`reset timezone`.execute(db)
      return rows.map(({ end }) => end.getTime() - Date.parse('2026-03-28T23:30:00+01:00'))
    })
    expect(ends).toEqual([DAY])
  })
})
