// Falling asleep and waking, for a frozen machine and for one that was stopped (reliability B3).

import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, eventually, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import type { Unit } from '../../contract/unit.ts'
import { lockUnit } from '../../store/units.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import type { Caller } from '../credentials/caller.ts'
import { destroyUnit } from './destroy.ts'
import { execInUnit } from './exec.ts'
import { readFile } from './files.ts'
import { getRecord, getUnit } from './get.ts'
import { hibernateFrozenUnits, giveMemoryBack, sleepIdleUnits } from './activity/idle.ts'
import { recordUse } from './activity/record-use.ts'
import { reconcileMachines } from './reconcile.ts'
import { sleepUnit } from './sleep.ts'
import { startUnit } from './start.ts'
import { stopUnit } from './stop.ts'
import { transition } from './lifecycle/transition.ts'

let domain: TestDomain
let caller: Caller
let tier: 'frozen' | 'stopped'

const state = async (id: string) => (await getUnit(domain.app, caller, id)).state
const machineOf = (id: string) => domain.engine.machines().find((machine) => machine.id === id)
const callsOn = (id: string, operation: string) =>
  domain.engine.calls.filter((call) => call.id === id && call.operation === operation).length
const run = async (id: string, ...cmd: string[]) =>
  await execInUnit(domain.app, caller, id, { cmd, timeoutMs: 5_000 })
const settle = async (ms = 20) => await new Promise((resolve) => setTimeout(resolve, ms))
const body = (rest: Record<string, unknown> = {}) => ({ sleep: '1m', stack: false, now: false, ...rest })

async function makeSleepingUnit(spec: Record<string, unknown> = {}): Promise<Unit> {
  const unit = await makeUnit(domain.app, caller, { sleep: '1m', ...spec })
  domain.clock.advance(61_000)
  await sleepIdleUnits(domain.app)
  return await eventually(domain.app, caller, unit.id, 'sleeping')
}

/** Waits until a statement of this test’s database waits for a lock. */
async function untilSomebodyWaits(): Promise<void> {
  const waiting = async () =>
    (
      await sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(
        domain.app.db,
      )
    ).rows.length
  await expect.poll(waiting).toBeGreaterThan(0)
}

async function makeStack(names: string[], sleep = '5m'): Promise<Unit[]> {
  const stack = `stack-${names.join('-')}`
  const units: Unit[] = []
  for (const name of names) units.push(await makeUnit(domain.app, caller, { name, sleep: '1m' }, { stack }))
  const [first] = units
  if (first) await sleepUnit(domain.app, caller, first.id, body({ sleep, stack: true }))
  return units
}

function setUp(frozenFor: string): void {
  beforeAll(async () => {
    tier = frozenFor === '0s' ? 'stopped' : 'frozen'
    domain = await createTestDomain({ BERTH_FROZEN_FOR: frozenFor })
  })
  beforeEach(async () => {
    caller = await domain.makeCaller()
  })
  afterEach(async () => {
    await domain.app.db.deleteFrom('units').execute()
    await domain.engine.recover([])
  })
  afterAll(async () => await domain.close())
}

describe.each([
  { name: 'a unit that sleeps frozen', frozenFor: '10m', wakesBy: 'thaw' },
  { name: 'a unit that sleeps stopped', frozenFor: '0s', wakesBy: 'start' },
] as const)('$name', ({ frozenFor, wakesBy }) => {
  setUp(frozenFor)

  it('falls asleep once its window has passed, and costs nothing then', async () => {
    const unit = await makeSleepingUnit()
    expect(unit).toMatchObject({ state: 'sleeping', stoppedReason: 'idle', sleepsAt: null })
    expect(machineOf(unit.id)).toMatchObject(
      tier === 'frozen' ? { state: 'running', frozen: true } : { state: 'exited', frozen: false },
    )
    domain.clock.advance(3_600_000)
    expect((await getUnit(domain.app, caller, unit.id)).costCentsSoFar).toBe(unit.costCentsSoFar)
  })

  it('is woken once by ten concurrent commands', async () => {
    const unit = await makeSleepingUnit()
    const before = callsOn(unit.id, wakesBy)
    const results = await Promise.all(Array.from({ length: 10 }, () => run(unit.id, 'echo', 'awake')))
    for (const result of results) expect(result.stdout).toBe('awake\n')
    expect(callsOn(unit.id, wakesBy)).toBe(before + 1)
    const awake = await getUnit(domain.app, caller, unit.id)
    expect(awake).toMatchObject({ state: 'running', stoppedReason: null })
    expect(Date.parse(awake.sleepsAt ?? '')).toBeGreaterThan(domain.clock.now().getTime() + 55_000)
  })

  it('is woken by reading a file and by a start, and not by reading the unit', async () => {
    const unit = await makeSleepingUnit()
    await getUnit(domain.app, caller, unit.id)
    await sleepUnit(domain.app, caller, unit.id, body({ sleep: '5m' }))
    expect(await state(unit.id)).toBe('sleeping')
    await expect(readFile(domain.app, caller, unit.id, '/nothing')).rejects.toMatchObject({ status: 404 })
    expect(await state(unit.id)).toBe('running')
    await sleepUnit(domain.app, caller, unit.id, body({ now: true }))
    expect((await startUnit(domain.app, caller, unit.id)).state).toBe('running')
  })

  it('is billed for both times it was awake', async () => {
    const unit = await makeSleepingUnit()
    domain.clock.advance(3_600_000)
    await run(unit.id, 'true')
    domain.clock.advance(61_000)
    await sleepIdleUnits(domain.app)
    const asleep = await eventually(domain.app, caller, unit.id, 'sleeping')
    // About a minute each, at half a cent an hour.
    expect(asleep.costCentsSoFar).toBeGreaterThan((0.5 / 3600) * 122)
    expect(asleep.costCentsSoFar).toBeLessThan((0.5 / 3600) * 130)
  })

  it('is not changed by a caller that read it before it slept', async () => {
    const unit = await makeUnit(domain.app, caller, { sleep: '1m' })
    const before = await getRecord(domain.app, caller, unit.id)
    await sleepUnit(domain.app, caller, unit.id, { sleep: '1m', stack: false, now: true })
    await startUnit(domain.app, caller, unit.id)
    const after = await getRecord(domain.app, caller, unit.id)
    expect(before.state).toBe(after.state)
    expect(await transition(domain.app, before, 'stop')).toBeNull()
    expect(await transition(domain.app, after, 'stop')).toMatchObject({ state: 'stopping' })
  })

  it('wakes for a command that arrives while it falls asleep', async () => {
    const unit = await makeUnit(domain.app, caller, { sleep: '1m' })
    domain.clock.advance(61_000)
    const release = domain.engine.hang(tier === 'frozen' ? 'freeze' : 'suspend')
    await sleepIdleUnits(domain.app)
    await eventually(domain.app, caller, unit.id, 'stopping')
    const result = run(unit.id, 'echo', 'back')
    await settle()
    release()
    expect((await result).stdout).toBe('back\n')
  })

  it('stays asleep with the reason when its wake fails, and the next wake works', async () => {
    const unit = await makeSleepingUnit()
    domain.engine.fail('thaw', 'internal')
    domain.engine.fail('start', 'internal')
    await expect(run(unit.id, 'true')).rejects.toMatchObject({ status: 502, code: 'provider_error' })
    expect(await getUnit(domain.app, caller, unit.id)).toMatchObject({
      state: 'sleeping',
      stoppedReason: 'provider',
      error: expect.any(String),
    })
    expect((await run(unit.id, 'true')).exitCode).toBe(0)
    expect((await getUnit(domain.app, caller, unit.id)).error).toBeNull()
    domain.engine.heal('thaw')
  })

  it('is stopped by a stop, and only a start runs it again', async () => {
    const unit = await makeSleepingUnit()
    expect(await stopUnit(domain.app, caller, unit.id)).toMatchObject({
      state: 'stopped',
      stoppedReason: 'user',
    })
    await expect(run(unit.id, 'true')).rejects.toMatchObject({ status: 409, code: 'invalid_state' })
    expect(machineOf(unit.id)).toMatchObject({ state: 'exited' })
    expect((await startUnit(domain.app, caller, unit.id)).state).toBe('running')
  })

  it('can be destroyed while it sleeps', async () => {
    const unit = await makeSleepingUnit()
    expect((await destroyUnit(domain.app, caller, unit.id)).state).toBe('destroyed')
    expect(machineOf(unit.id)).toBeUndefined()
  })

  it('does not count towards the concurrency limit until it wakes', async () => {
    const one = await domain.makeCaller({ maxConcurrentUnits: 1 })
    const first = await makeUnit(domain.app, one, { sleep: '1m' })
    await sleepUnit(domain.app, one, first.id, body({ now: true }))
    const second = await makeUnit(domain.app, one, { name: 'other', sleep: '1m' })
    const refused = execInUnit(domain.app, one, first.id, { cmd: ['true'], timeoutMs: 1_000 })
    await expect(refused).rejects.toMatchObject({ status: 402, code: 'quota_exceeded' })
    expect((await getUnit(domain.app, one, first.id)).state).toBe('sleeping')
    await stopUnit(domain.app, one, second.id)
    expect((await execInUnit(domain.app, one, first.id, { cmd: ['true'], timeoutMs: 1_000 })).exitCode).toBe(
      0,
    )
  })
})

describe('the frozen state', () => {
  setUp('10m')

  it('ends after its time, and the unit is unchanged but for its machine', async () => {
    const unit = await makeSleepingUnit()
    domain.clock.advance(9 * 60_000)
    await hibernateFrozenUnits(domain.app)
    await settle()
    expect(machineOf(unit.id)).toMatchObject({ frozen: true })
    domain.clock.advance(60_000)
    await hibernateFrozenUnits(domain.app)
    await expect.poll(() => machineOf(unit.id)).toMatchObject({ state: 'exited', frozen: false })
    await expect.poll(() => getUnit(domain.app, caller, unit.id)).toEqual(unit)
    expect((await run(unit.id, 'echo', 'cold')).stdout).toBe('cold\n')
    expect(machineOf(unit.id)).toMatchObject({ generation: 2 })
  })

  it('ends when memory runs short, for the units asleep longest first', async () => {
    const units: Unit[] = []
    for (let count = 0; count < 10; count++) units.push(await makeSleepingUnit({ name: `unit-${count}` }))
    domain.engine.setCapacity({ availableMemoryMb: 100 })
    domain.clock.advance(1000)
    await giveMemoryBack(domain.app)
    const frozen = () => units.map(({ id }) => machineOf(id)?.frozen)
    await expect.poll(frozen).toEqual([...Array<boolean>(8).fill(false), true, true])
    domain.engine.setCapacity({ availableMemoryMb: 60_000 })
  })

  it('is skipped for a lost machine: the next call starts the unit again', async () => {
    const unit = await makeSleepingUnit()
    domain.engine.loseMachine(unit.id)
    expect((await run(unit.id, 'echo', 'again')).stdout).toBe('again\n')
    expect(machineOf(unit.id)).toMatchObject({ state: 'running', generation: 2 })
  })

  it('is skipped for a machine that cannot be frozen: it is stopped', async () => {
    const unit = await makeUnit(domain.app, caller, { sleep: '1m' })
    domain.engine.fail('freeze', 'timeout')
    await sleepUnit(domain.app, caller, unit.id, body({ now: true }))
    expect(await state(unit.id)).toBe('sleeping')
    expect(machineOf(unit.id)).toMatchObject({ state: 'exited' })
  })

  it('ends when a freeze came too late for a unit that runs', async () => {
    const unit = await makeUnit(domain.app, caller)
    await domain.engine.freeze({ id: unit.id, generation: 1 })
    expect((await run(unit.id, 'echo', 'warm')).stdout).toBe('warm\n')
    await domain.engine.freeze({ id: unit.id, generation: 1 })
    domain.clock.advance(11_000)
    await reconcileMachines(domain.app)
    expect(machineOf(unit.id)).toMatchObject({ state: 'running', frozen: false })
  })

  it('ends with a stopped machine when the server crashed before it hibernated the unit', async () => {
    const unit = await makeSleepingUnit()
    domain.clock.advance(11 * 60_000)
    domain.faults.set('hibernate.suspend.before', 'crash')
    await hibernateFrozenUnits(domain.app)
    await settle()
    domain.clock.advance(11_000)
    await reconcileMachines(domain.restarted())
    expect(machineOf(unit.id)).toMatchObject({ state: 'exited' })
    expect((await run(unit.id, 'echo', 'cold')).stdout).toBe('cold\n')
  })
})

describe('a use of a unit', () => {
  setUp('10m')

  it('moves sleepsAt, and keeps the unit awake', async () => {
    const unit = await makeUnit(domain.app, caller, { sleep: '1m' })
    domain.clock.advance(50_000)
    await run(unit.id, 'true')
    const after = await getUnit(domain.app, caller, unit.id)
    expect(Date.parse(after.sleepsAt ?? '') - Date.parse(unit.sleepsAt ?? '')).toBeGreaterThan(49_000)
    domain.clock.advance(50_000)
    await sleepIdleUnits(domain.app)
    expect(await state(unit.id)).toBe('running')
  })

  it('in the last moment keeps a unit awake that was about to sleep', async () => {
    const { id } = await makeUnit(domain.app, caller, { name: 'last-moment', sleep: '1m' })
    domain.clock.advance(61_000)
    let round: Promise<void> = Promise.resolve()
    await domain.app.db.transaction().execute(async (db) => {
      await lockUnit(db, id)
      round = sleepIdleUnits(domain.app)
      await untilSomebodyWaits()
      const sleepsAt = new Date(domain.clock.now().getTime() + 60_000)
      await sql`update units set sleeps_at = ${sleepsAt} where id = ${id}`.execute(db)
    })
    await round
    expect(await state(id)).toBe('running')
  })

  it('is not a read of the unit', async () => {
    const unit = await makeUnit(domain.app, caller, { sleep: '1m' })
    domain.clock.advance(10_000)
    expect((await getUnit(domain.app, caller, unit.id)).sleepsAt).toBe(unit.sleepsAt)
  })

  it('lasts as long as a command runs', async () => {
    const unit = await makeUnit(domain.app, caller, { sleep: '1m' })
    domain.engine.onExec(({ argv }) => (argv[0] === 'three-windows' ? { afterMs: 180_000 } : null))
    const running = execInUnit(domain.app, caller, unit.id, { cmd: ['three-windows'], timeoutMs: 600_000 })
    while (callsOn(unit.id, 'exec') === 0) await settle(1)
    for (let step = 0; step < 8; step++) {
      domain.clock.advance(21_000)
      await settle()
      await sleepIdleUnits(domain.app)
      expect(await state(unit.id)).toBe('running')
    }
    await expect(sleepUnit(domain.app, caller, unit.id, body({ now: true }))).rejects.toMatchObject({
      status: 409,
      details: { busy: [unit.id] },
    })
    domain.clock.advance(21_000)
    expect((await running).exitCode).toBe(0)
  })
})

describe('the sleep call', () => {
  setUp('10m')

  it('sets the window, counted from the last use', async () => {
    const unit = await makeUnit(domain.app, caller, { sleep: '30m' })
    domain.clock.advance(60_000)
    const { units } = await sleepUnit(domain.app, caller, unit.id, body({ sleep: '2h' }))
    expect(units).toMatchObject([{ id: unit.id, sleep: '2h', lastUsedAt: unit.lastUsedAt }])
    const window = Date.parse(units[0]?.sleepsAt ?? '') - Date.parse(unit.lastUsedAt ?? '')
    expect(window).toBe(2 * 3_600_000)
    const never = await sleepUnit(domain.app, caller, unit.id, body({ sleep: 'never' }))
    expect(never.units).toMatchObject([{ sleep: 'never', sleepsAt: null }])
  })

  it('with a window that has passed makes the unit sleep at once', async () => {
    const unit = await makeUnit(domain.app, caller, { sleep: '30m' })
    domain.clock.advance(120_000)
    await sleepUnit(domain.app, caller, unit.id, body())
    await sleepIdleUnits(domain.app)
    await eventually(domain.app, caller, unit.id, 'sleeping')
  })

  it('with `now` is refused for a unit that is used after each read', async () => {
    const unit = await makeUnit(domain.app, caller)
    const readAndUse = async (_key: string, read: () => Promise<UnitRecord>) => {
      const found = await read()
      domain.clock.advance(1)
      await recordUse(domain.app, found)
      return found
    }
    const app = { ...domain.app, activity: { ...domain.app.activity, reads: { run: readAndUse } } }
    const refused = sleepUnit(app, caller, unit.id, body({ now: true }))
    await expect(refused).rejects.toMatchObject({ code: 'invalid_state', details: { busy: [unit.id] } })
    expect(await state(unit.id)).toBe('running')
  })

  it('with `now` answers once the unit sleeps, and can be repeated', async () => {
    const unit = await makeUnit(domain.app, caller)
    for (let time = 0; time < 2; time++) {
      const { units } = await sleepUnit(domain.app, caller, unit.id, body({ now: true }))
      expect(units).toMatchObject([{ state: 'sleeping', stoppedReason: 'idle', sleepsAt: null }])
    }
  })

  it('is bounded by policy and plan', async () => {
    const bound = await domain.makeCaller({ maxSleep: '1h' }, 'hobby')
    const unit = await makeUnit(domain.app, bound)
    const ask = (sleep: string) => sleepUnit(domain.app, bound, unit.id, body({ sleep }))
    await expect(ask('2h')).rejects.toMatchObject({ status: 402, code: 'policy_violation' })
    await expect(ask('never')).rejects.toMatchObject({ status: 403, code: 'forbidden' })
    expect((await ask('1h')).units).toMatchObject([{ sleep: '1h' }])
  })

  it('is refused for a stopped unit with `now`, and for a destroyed one', async () => {
    const unit = await makeUnit(domain.app, caller)
    await stopUnit(domain.app, caller, unit.id)
    await expect(sleepUnit(domain.app, caller, unit.id, body({ now: true }))).rejects.toMatchObject({
      status: 409,
    })
    expect((await sleepUnit(domain.app, caller, unit.id, body())).units).toMatchObject([{ state: 'stopped' }])
    await destroyUnit(domain.app, caller, unit.id)
    await expect(sleepUnit(domain.app, caller, unit.id, body())).rejects.toMatchObject({ status: 409 })
  })

  it('applies to a unit that is starting', async () => {
    const unit = await makeSleepingUnit()
    domain.engine.heal('thaw')
    const release = domain.engine.hang('thaw')
    const woken = run(unit.id, 'true')
    await eventually(domain.app, caller, unit.id, 'starting')
    const set = sleepUnit(domain.app, caller, unit.id, body({ sleep: '3h' }))
    await settle()
    release()
    await Promise.all([woken, set])
    const after = await getUnit(domain.app, caller, unit.id)
    expect(Date.parse(after.sleepsAt ?? '')).toBeGreaterThan(domain.clock.now().getTime() + 2.9 * 3_600_000)
  })
})

describe('a stack that sleeps together', () => {
  setUp('10m')

  it('has one window, which the use of any unit moves for all', async () => {
    const [db, web] = await makeStack(['db', 'web'])
    if (!db || !web) throw new Error('no stack')
    domain.clock.advance(4 * 60_000)
    await run(web.id, 'true')
    domain.clock.advance(4 * 60_000)
    await sleepIdleUnits(domain.app)
    const shown = await getUnit(domain.app, caller, db.id)
    expect(shown).toMatchObject({ state: 'running', sleep: '5m', lastUsedAt: db.lastUsedAt })
    expect(shown.sleepsAt).toBe((await getUnit(domain.app, caller, web.id)).sleepsAt)
    domain.clock.advance(2 * 60_000)
    await sleepIdleUnits(domain.app)
    for (const { id } of [db, web]) await eventually(domain.app, caller, id, 'sleeping')
  })

  it('wakes as a whole for a call to any of its units', async () => {
    const units = await makeStack(['cache', 'db', 'web'])
    const [cache, , web] = units
    if (!cache || !web) throw new Error('no stack')
    const { units: asleep } = await sleepUnit(domain.app, caller, web.id, body({ stack: true, now: true }))
    expect(asleep.map(({ name, state }) => [name, state])).toEqual([
      ['cache', 'sleeping'],
      ['db', 'sleeping'],
      ['web', 'sleeping'],
    ])
    expect((await run(cache.id, 'echo', 'up')).stdout).toBe('up\n')
    for (const { id } of units) await eventually(domain.app, caller, id, 'running')
  })

  it('wakes also that of its units which still falls asleep', async () => {
    const units = await makeStack(['db', 'web'])
    const [db] = units
    if (!db) throw new Error('no stack')
    const release = domain.engine.hang('freeze')
    const falling = sleepUnit(domain.app, caller, db.id, body({ stack: true, now: true }))
    const states = async () =>
      await Promise.all(units.map(async ({ id }) => (await getUnit(domain.app, caller, id)).state))
    await expect.poll(async () => (await states()).toSorted()).toEqual(['sleeping', 'stopping'])
    const asleep = units[(await states()).indexOf('sleeping')]
    const woken = run(asleep?.id ?? '', 'true')
    await eventually(domain.app, caller, asleep?.id ?? '', 'running')
    release()
    await Promise.all([falling, woken])
    for (const { id } of units) await eventually(domain.app, caller, id, 'running')
  })

  it('starts cold units in the order of creation, each once the earlier ones are ready', async () => {
    const units = await makeStack(['one', 'two', 'three'])
    const [first, , last] = units
    if (!first || !last) throw new Error('no stack')
    await sleepUnit(domain.app, caller, first.id, body({ stack: true, now: true }))
    domain.clock.advance(11 * 60_000)
    await hibernateFrozenUnits(domain.app)
    for (const { id } of units) await expect.poll(() => machineOf(id)?.state).toBe('exited')
    const from = domain.engine.calls.length
    await run(last.id, 'true')
    const started = domain.engine.calls.slice(from).filter(({ operation }) => operation === 'start')
    expect(started.map(({ id }) => id)).toEqual(units.map(({ id }) => id))
  })

  it('includes units without a window of their own, and excludes those with one', async () => {
    const [db] = await makeStack(['db'], '7m')
    if (!db) throw new Error('no stack')
    const stack = 'stack-db'
    const joined = await makeUnit(domain.app, caller, { name: 'joined' }, { stack })
    const apart = await makeUnit(domain.app, caller, { name: 'apart', sleep: '1m' }, { stack })
    expect([joined.sleep, apart.sleep]).toEqual(['7m', '1m'])
    await sleepUnit(domain.app, caller, joined.id, body({ sleep: '2m' }))
    domain.clock.advance(3 * 60_000)
    await sleepIdleUnits(domain.app)
    for (const { id } of [joined, apart]) await eventually(domain.app, caller, id, 'sleeping')
    expect(await state(db.id)).toBe('running')
    await run(db.id, 'true')
    expect(await state(joined.id)).toBe('sleeping')
  })

  it('wakes the called unit also when the concurrency limit keeps its neighbours asleep', async () => {
    const few = await domain.makeCaller({ maxConcurrentUnits: 2 })
    const stack = 'narrow'
    const db = await makeUnit(domain.app, few, { name: 'db' }, { stack })
    const web = await makeUnit(domain.app, few, { name: 'web' }, { stack })
    await sleepUnit(domain.app, few, db.id, body({ stack: true, now: true }))
    await makeUnit(domain.app, few, { name: 'elsewhere' })
    const result = await execInUnit(domain.app, few, web.id, { cmd: ['echo', 'up'], timeoutMs: 1_000 })
    expect(result.stdout).toBe('up\n')
    expect((await getUnit(domain.app, few, db.id)).state).toBe('sleeping')
  })
})
