// Packets between units of a stack, as the engine reports them: a use of a running unit, and a wake of a sleeping
// one.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, eventually, makeUnit, type TestDomain } from '../../../../test/support/domain.ts'
import { countStatements } from '../../../../test/support/statements.ts'
import type { Unit } from '../../../contract/unit.ts'
import { revokeCredential } from '../../../store/credentials.ts'
import type { Caller } from '../../credentials/caller.ts'
import { getUnit } from '../get.ts'
import { sleepIdleUnits } from './idle.ts'
import { sleepUnit } from '../sleep.ts'
import { stopUnit } from '../stop.ts'
import { watchTraffic } from './traffic.ts'

let domain: TestDomain
let caller: Caller
let stop: () => Promise<void>

const settle = async (ms = 20) => await new Promise((resolve) => setTimeout(resolve, ms))
const state = async ({ id }: Unit) => (await getUnit(domain.app, caller, id)).state
const sleepsAt = async ({ id }: Unit) => Date.parse((await getUnit(domain.app, caller, id)).sleepsAt ?? '')
const callsOn = ({ id }: Unit, operation: string) =>
  domain.engine.calls.filter((call) => call.id === id && call.operation === operation).length
const asleep = async (unit: Unit) => {
  await sleepUnit(domain.app, caller, unit.id, { sleep: '1m', stack: false, now: true })
}

/** The round that runs every second. */
async function nextRound(): Promise<void> {
  domain.clock.advance(1001)
  await settle()
}

/** As many rounds as it takes. */
async function roundsUntil<T>(read: () => T | Promise<T>, wanted: T): Promise<void> {
  const round = async () => {
    await nextRound()
    return await read()
  }
  await expect.poll(round, { interval: 1 }).toBe(wanted)
}

beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  caller = await domain.makeCaller()
  const done = new AbortController()
  const watching = watchTraffic(domain.app, done.signal)
  stop = async () => {
    done.abort()
    await watching
  }
  await settle(1)
})
afterEach(async () => {
  await stop()
  await domain.app.db.deleteFrom('units').execute()
  await domain.engine.recover([])
})
afterAll(async () => await domain.close())

describe('packets to a running unit', () => {
  it('move sleepsAt, and that of the whole stack where it sleeps together', async () => {
    const units: Unit[] = []
    for (const name of ['db', 'web']) units.push(await makeUnit(domain.app, caller, { name }, { stack: 's' }))
    const [db, web] = units
    if (!db || !web) throw new Error('two units were made')
    await sleepUnit(domain.app, caller, db.id, { sleep: '1m', stack: true, now: false })
    const before = await sleepsAt(web)
    domain.clock.advance(30_000)
    domain.engine.sendPackets([db.id])
    for (const unit of units)
      await expect.poll(async () => (await sleepsAt(unit)) - before).toBeGreaterThan(29_000)
  })

  it('keep it awake while they come, at a few statements a second for all units', async () => {
    const units: Unit[] = []
    for (let count = 0; count < 5; count++) {
      units.push(await makeUnit(domain.app, caller, { name: `unit-${count}`, sleep: '1m' }))
    }
    const [first] = units
    if (!first) throw new Error('five units were made')
    const statements = countStatements()
    for (let second = 0; second < 150; second++) {
      for (let told = 0; told < 5; told++) domain.engine.sendPackets(units.map(({ id }) => id))
      domain.clock.advance(1001)
      await settle(3)
      if (second % 10 !== 0) continue
      // The test's seconds are shorter than a statement may take.
      const left = async () => (await sleepsAt(first)) - domain.clock.now().getTime()
      await expect.poll(left).toBeGreaterThan(30_000)
      await sleepIdleUnits(domain.app)
    }
    for (const unit of units) expect(await state(unit)).toBe('running')
    // Includes those of the sleep job and of this test.
    expect(statements()).toBeLessThan(150 * 3)
  })
})

describe('packets to a sleeping unit', () => {
  it('wake it at once and only once, frozen or stopped', async () => {
    const unit = await makeUnit(domain.app, caller)
    await asleep(unit)
    for (let told = 0; told < 5; told++) domain.engine.sendPackets([unit.id])
    await eventually(domain.app, caller, unit.id, 'running')
    expect(callsOn(unit, 'thaw')).toBe(1)
    await asleep(unit)
    domain.engine.loseMachine(unit.id)
    await nextRound()
    domain.engine.sendPackets([unit.id])
    await eventually(domain.app, caller, unit.id, 'running')
    expect(callsOn(unit, 'start')).toBe(2)
  })

  it('wake it at once after earlier traffic, but packets sent before it slept do not wake it', async () => {
    const unit = await makeUnit(domain.app, caller)
    const looks = countStatements(/^select .*"units"/)
    domain.engine.sendPackets([unit.id])
    await expect.poll(looks).toBe(1)
    await settle()
    for (let told = 0; told < 4; told++) domain.engine.sendPackets([unit.id])
    await asleep(unit)
    await nextRound()
    expect(await state(unit)).toBe('sleeping')
    domain.engine.sendPackets([unit.id])
    await eventually(domain.app, caller, unit.id, 'running')
    await asleep(unit)
    domain.engine.sendPackets([unit.id])
    await eventually(domain.app, caller, unit.id, 'running')
  })

  it('wake it once it is asleep when they come while it falls asleep', async () => {
    const unit = await makeUnit(domain.app, caller)
    const release = domain.engine.hang('freeze')
    const sleeping = asleep(unit)
    await eventually(domain.app, caller, unit.id, 'stopping')
    domain.engine.sendPackets([unit.id])
    await settle()
    expect(await state(unit)).toBe('stopping')
    release()
    await sleeping
    await eventually(domain.app, caller, unit.id, 'running')
  })

  it('wake the other units of a stack that sleeps together', async () => {
    const units: Unit[] = []
    for (const name of ['db', 'web']) units.push(await makeUnit(domain.app, caller, { name }, { stack: 's' }))
    const [db, web] = units
    if (!db || !web) throw new Error('two units were made')
    await sleepUnit(domain.app, caller, db.id, { sleep: '1m', stack: true, now: true })
    domain.engine.sendPackets([web.id])
    await eventually(domain.app, caller, web.id, 'running')
    await eventually(domain.app, caller, db.id, 'running')
  })

  it('wake it after a restart of the engine', async () => {
    const unit = await makeUnit(domain.app, caller)
    await asleep(unit)
    const watches = () => domain.engine.calls.filter(({ operation }) => operation === 'watchTraffic').length
    const before = watches()
    domain.engine.crash()
    await roundsUntil(watches, before + 1)
    domain.engine.sendPackets([unit.id])
    await eventually(domain.app, caller, unit.id, 'running')
  })

  it('wake it also when the credential that last ran it is revoked', async () => {
    const unit = await makeUnit(domain.app, caller)
    await asleep(unit)
    const at = domain.app.clock.now()
    await revokeCredential(domain.app.db, { teamId: caller.teamId, id: caller.credentialId, at })
    domain.engine.sendPackets([unit.id])
    await eventually(domain.app, caller, unit.id, 'running')
  })
})

describe('packets that cannot wake a unit', () => {
  it('because of the concurrency limit are retried every few seconds until there is room', async () => {
    caller = await domain.makeCaller({ maxConcurrentUnits: 1 })
    const unit = await makeUnit(domain.app, caller)
    await asleep(unit)
    const other = await makeUnit(domain.app, caller, { name: 'other' })
    const statements = countStatements()
    for (let second = 0; second < 20; second++) {
      for (let told = 0; told < 5; told++) domain.engine.sendPackets([unit.id])
      await nextRound()
    }
    // A check and a refusal take about eight statements, and there is one every few seconds.
    expect(statements()).toBeLessThan(5 * 10)
    expect(await state(unit)).toBe('sleeping')
    await stopUnit(domain.app, caller, other.id)
    await roundsUntil(() => state(unit), 'running')
  })

  it('are forgotten after a minute', async () => {
    const unit = await makeUnit(domain.app, caller)
    await asleep(unit)
    domain.engine.fail('thaw', 'internal', { times: 1000 })
    domain.engine.fail('start', 'internal', { times: 1000 })
    domain.engine.sendPackets([unit.id])
    await roundsUntil(() => callsOn(unit, 'start'), 3)
    // The next try is seconds away, and does not come.
    domain.clock.advance(60_000)
    for (let second = 0; second < 20; second++) await nextRound()
    expect(callsOn(unit, 'start')).toBe(3)
    domain.engine.heal('thaw')
    domain.engine.heal('start')
    domain.engine.sendPackets([unit.id])
    await eventually(domain.app, caller, unit.id, 'running')
  })

  it.each(['stopped', 'destroyed', 'unknown'])('have no effect on a unit that is %s', async (what) => {
    const unit = await makeUnit(domain.app, caller)
    if (what === 'stopped') await stopUnit(domain.app, caller, unit.id)
    if (what === 'destroyed') await domain.app.db.deleteFrom('units').where('id', '=', unit.id).execute()
    const before = domain.engine.calls.length
    domain.engine.sendPackets([what === 'unknown' ? 'unit_00000000000000000000000000000000' : unit.id])
    await nextRound()
    expect(domain.engine.calls.slice(before).filter(({ operation }) => operation !== 'capacity')).toEqual([])
  })

  it('do not keep the unit of another team from waking', async () => {
    const stuck: Unit[] = []
    for (let count = 0; count < 20; count++) {
      const unit = await makeUnit(domain.app, caller, { name: `unit-${count}` })
      await asleep(unit)
      stuck.push(unit)
    }
    const release = domain.engine.hang('thaw', { times: 16 })
    domain.engine.sendPackets(stuck.map(({ id }) => id))
    await expect.poll(() => stuck.filter((unit) => callsOn(unit, 'thaw') > 0).length).toBe(16)
    caller = await domain.makeCaller()
    const unit = await makeUnit(domain.app, caller)
    await asleep(unit)
    domain.engine.sendPackets([unit.id])
    await roundsUntil(() => state(unit), 'running')
    release()
  })
})
