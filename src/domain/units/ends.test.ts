// How long units live: the end is met however much a unit is used, once, and never after it was moved.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, eventually, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import type { App } from '../../app.ts'
import { unitForkSchema } from '../../contract/fork.ts'
import { MINUTE, SECOND } from '../../lib/clock.ts'
import type { Caller } from '../credentials/caller.ts'
import { forkUnit } from '../forks/fork-unit.ts'
import { adoptClockJump } from '../time/clock-jumps.ts'
import { changeUnit } from './change.ts'
import { endUnits } from './ends.ts'
import { execInUnit } from './exec.ts'
import { getUnit } from './get.ts'
import { resumeOperations } from './reconcile.ts'
import { startUnit } from './start.ts'
import { stopUnit } from './stop.ts'

let domain: TestDomain
let app: App
let caller: Caller
beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  app = domain.restarted()
  caller = await domain.makeCaller()
})
// The next test moves the clock past their end too.
afterEach(async () => {
  await domain.app.db.deleteFrom('units').execute()
  await domain.engine.recover([])
})
afterAll(async () => await domain.close())

const stateOf = async (id: string) => (await getUnit(app, caller, id)).state
const leftMs = async (id: string) =>
  Date.parse((await getUnit(app, caller, id)).endsAt ?? '') - app.clock.now().getTime()
const pass = async (ms: number) => {
  domain.clock.advance(ms)
  await endUnits(app)
}

describe('a unit with a time to live', () => {
  it('is destroyed when it has passed, and not before', async () => {
    const unit = await makeUnit(app, caller, { timeToLive: '5m' })
    expect(unit).toMatchObject({ timeToLive: '5m', atEnd: 'destroy' })
    expect(await leftMs(unit.id)).toBeGreaterThan(4.9 * MINUTE)
    await pass(4.9 * MINUTE)
    expect(await stateOf(unit.id)).toBe('running')
    await pass(0.2 * MINUTE)
    expect(await getUnit(app, caller, unit.id)).toMatchObject({ state: 'destroyed', endsAt: null })
  })

  it('is not kept by being used', async () => {
    const unit = await makeUnit(app, caller, { timeToLive: '90s', sleep: '1h' })
    await pass(60 * SECOND)
    await execInUnit(app, caller, unit.id, { cmd: ['true'], timeoutMs: SECOND })
    await pass(31 * SECOND)
    expect(await stateOf(unit.id)).toBe('destroyed')
  })

  it('is also destroyed while it is stopped', async () => {
    const unit = await makeUnit(app, caller, { timeToLive: '5m' })
    await stopUnit(app, caller, unit.id)
    await pass(6 * MINUTE)
    expect(await stateOf(unit.id)).toBe('destroyed')
  })

  it('sleeps at its end if it is to, and has no end after that', async () => {
    const unit = await makeUnit(app, caller, { timeToLive: '5m', atEnd: 'sleep', sleep: '1h' })
    const ending = app.activity.uses.begin(unit.id)
    await pass(6 * MINUTE)
    ending()
    expect(await getUnit(app, caller, unit.id)).toMatchObject({
      state: 'sleeping',
      stoppedReason: 'idle',
      timeToLive: null,
      atEnd: 'sleep',
      endsAt: null,
    })
    await startUnit(app, caller, unit.id)
    await pass(30 * MINUTE)
    expect(await getUnit(app, caller, unit.id)).toMatchObject({ state: 'running', endsAt: null })
  })

  it('stops at its end if it is to, and has no end after that', async () => {
    const unit = await makeUnit(app, caller, { timeToLive: '5m', atEnd: 'stop', sleep: '1h' })
    domain.clock.advance(5 * MINUTE)
    await endUnits(app)
    expect(await getUnit(app, caller, unit.id)).toMatchObject({
      state: 'stopped',
      stoppedReason: 'user',
      timeToLive: null,
      endsAt: null,
      atEnd: 'stop',
    })
  })

  it('that is stopped at its end stays stopped where it is to sleep', async () => {
    const unit = await makeUnit(app, caller, { timeToLive: '5m', atEnd: 'sleep' })
    await stopUnit(app, caller, unit.id)
    await pass(6 * MINUTE)
    expect(await getUnit(app, caller, unit.id)).toMatchObject({ state: 'stopped', endsAt: null })
  })

  it('keeps its end over a stop and a start', async () => {
    const unit = await makeUnit(app, caller, { timeToLive: '5m' })
    const { endsAt } = await getUnit(app, caller, unit.id)
    await stopUnit(app, caller, unit.id)
    expect((await startUnit(app, caller, unit.id)).endsAt).toBe(endsAt)
  })

  it('is still ended by a service that crashed while it ended it', async () => {
    const unit = await makeUnit(app, caller, { timeToLive: '5m' })
    domain.faults.set('destroy.machine.before', 'crash')
    domain.clock.advance(6 * MINUTE)
    void endUnits(app)
    await expect.poll(() => domain.faults.size).toBe(0)
    expect(await stateOf(unit.id)).toBe('destroying')
    app = domain.restarted()
    await resumeOperations(app)
    await eventually(app, caller, unit.id, 'destroyed')
  })

  it('lives as long when the wall clock jumps', async () => {
    const unit = await makeUnit(app, caller, { timeToLive: '30m' })
    domain.clock.jump(60 * MINUTE)
    await endUnits(app)
    await adoptClockJump(app)
    await endUnits(app)
    expect(await stateOf(unit.id)).toBe('running')
    expect(Math.abs((await leftMs(unit.id)) - 30 * MINUTE)).toBeLessThan(10 * SECOND)
  })
})

describe('a change', () => {
  it('of the time to live counts from now', async () => {
    const unit = await makeUnit(app, caller, { timeToLive: '5m' })
    await pass(4 * MINUTE)
    await changeUnit(app, caller, unit.id, { timeToLive: '3m' })
    await pass(2 * MINUTE)
    expect(await stateOf(unit.id)).toBe('running')
    await pass(2 * MINUTE)
    expect(await stateOf(unit.id)).toBe('destroyed')
  })

  it('to `never` takes the end away, and leaves what would happen at it', async () => {
    const unit = await makeUnit(app, caller, { timeToLive: '5m', atEnd: 'sleep' })
    const changed = await changeUnit(app, caller, unit.id, { timeToLive: 'never' })
    expect(changed).toMatchObject({ timeToLive: null, endsAt: null, atEnd: 'sleep' })
  })

  it('of the labels replaces them, and leaves the end as it is', async () => {
    const unit = await makeUnit(app, caller, { metadata: { app: 'shop', user: '7' }, timeToLive: '5m' })
    expect(unit.metadata).toEqual({ app: 'shop', user: '7' })
    const { endsAt } = await getUnit(app, caller, unit.id)
    const changed = await changeUnit(app, caller, unit.id, { metadata: { app: 'web' } })
    expect(changed).toMatchObject({ metadata: { app: 'web' }, endsAt, timeToLive: '5m' })
  })

  it('is refused for a unit that is destroyed', async () => {
    const unit = await makeUnit(app, caller, { timeToLive: '1m' })
    await pass(2 * MINUTE)
    await expect(changeUnit(app, caller, unit.id, { timeToLive: '1h' })).rejects.toMatchObject({
      code: 'invalid_state',
    })
  })
})

describe('a copy', () => {
  it('has the labels of its source, and its time to live from the beginning', async () => {
    const source = await makeUnit(app, caller, { timeToLive: '5m', metadata: { app: 'shop' } })
    await pass(3 * MINUTE)
    const { units } = await forkUnit(app, caller, source.id, unitForkSchema.parse({}))
    const id = units[0]?.id ?? ''
    expect(units[0]).toMatchObject({ metadata: { app: 'shop' }, timeToLive: '5m' })
    expect(await leftMs(id)).toBeGreaterThan(4.9 * MINUTE)
  })

  it('has those that the call gives', async () => {
    const source = await makeUnit(app, caller, { timeToLive: '5m', metadata: { app: 'shop' } })
    const asked = unitForkSchema.parse({ timeToLive: 'never', metadata: {}, atEnd: 'sleep' })
    const { units } = await forkUnit(app, caller, source.id, asked)
    expect(units[0]).toMatchObject({ metadata: {}, timeToLive: null, atEnd: 'sleep', endsAt: null })
  })
})
