// What a visit hears of its unit, in every state it can be in, and what it does to it.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, eventually, makeUnit, type TestDomain } from '../../../../test/support/domain.ts'
import { type Unit, unitListQuerySchema } from '../../../contract/unit.ts'
import { newId } from '../../../lib/ids.ts'
import type { Caller } from '../../credentials/caller.ts'
import { destroyUnit } from '../destroy.ts'
import { getStack } from '../../stacks/get.ts'
import { getUnit } from '../get.ts'
import { listUnits } from '../list.ts'
import { hibernateFrozenUnits, sleepIdleUnits } from './idle.ts'
import { reconcileMachines } from '../lifecycle/reconcile.ts'
import { sleepUnit } from '../sleep.ts'
import { stopUnit } from '../stop.ts'
import { transition } from '../lifecycle/transition.ts'
import { recordUses } from './record-use.ts'
import { visitUnit } from './visit.ts'
import { lockTeam } from '../../../store/stacks.ts'
import { findUnitOfAnyTeam } from '../../../store/units.ts'
import type { Sessions } from './sessions.ts'

let domain: TestDomain
let caller: Caller
let unit: Unit

beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  caller = await domain.makeCaller()
  unit = await makeUnit(domain.app, caller, { sleep: '1m' })
})
afterEach(async () => {
  domain.engine.heal('start')
  domain.engine.heal('thaw')
  domain.engine.setCapacity({ availableMemoryMb: 100_000 })
})
afterAll(async () => await domain.close())

const visit = (id = unit.id) => visitUnit(domain.app, id)
const get = (id = unit.id) => getUnit(domain.app, caller, id)
const asleep = async (id = unit.id, stack = false) =>
  await sleepUnit(domain.app, caller, id, { sleep: '1m', stack, now: true })
const addressOf = ({ id }: Unit) => domain.engine.machines().find((machine) => machine.id === id)?.address
const callsOf = (operation: string, id = unit.id) =>
  domain.engine.calls.filter((call) => call.id === id && call.operation === operation).length
const machineOf = (id: string) => domain.engine.machines().find((machine) => machine.id === id)
const settle = async (ms = 20) => await new Promise((resolve) => setTimeout(resolve, ms))

/** From the first tier of sleep to the second. */
async function hibernate(): Promise<void> {
  domain.clock.advance(11 * 60_000)
  await hibernateFrozenUnits(domain.app)
  const machine = () => domain.engine.machines().find(({ id }) => id === unit.id)
  await expect.poll(() => machine()?.state).not.toBe('running')
}

/** Lets time pass until the work has ended. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  let isOver = false
  const end = () => {
    isOver = true
  }
  work.then(end, end)
  while (!isOver) {
    await settle(5)
    domain.clock.advance(2000)
  }
  return await work
}

describe('a visit', () => {
  it('of a unit that runs is a use of it', async () => {
    const before = Date.parse(unit.sleepsAt ?? '')
    domain.clock.advance(30_000)
    expect(await visit()).toEqual({ kind: 'running', generation: 1, address: addressOf(unit) })
    expect(Date.parse((await get()).sleepsAt ?? '') - before).toBeGreaterThan(29_000)
  })

  it('wakes a frozen unit in the run it was in, and a cold one in another', async () => {
    await asleep()
    expect(await visit()).toMatchObject({ kind: 'running', generation: 1 })
    expect(callsOf('thaw')).toBe(1)
    // The visit is passed on before its row says so.
    await eventually(domain.app, caller, unit.id, 'running')
    await asleep()
    await hibernate()
    expect(await visit()).toMatchObject({ kind: 'running', generation: 2 })
    expect(await get()).toMatchObject({ state: 'running', stoppedReason: null })
  })

  it('wakes its whole stack where that sleeps together', async () => {
    const other = await makeUnit(domain.app, caller, { name: 'db' }, { stack: unit.name })
    await asleep(unit.id, true)
    expect((await get(other.id)).state).toBe('sleeping')
    expect(await visit()).toMatchObject({ kind: 'running' })
    await eventually(domain.app, caller, other.id, 'running')
  })

  it('wakes its unit once, however many come', async () => {
    await asleep()
    const answers = await Promise.all(Array.from({ length: 100 }, () => visit()))
    for (const answer of answers) expect(answer).toMatchObject({ kind: 'running', generation: 1 })
    expect(callsOf('thaw')).toBe(1)
  })

  it('waits for a unit that is being made, falls asleep or wakes', async () => {
    const release = domain.engine.hang('pull')
    const fresh = await makeUnit(domain.app, caller, { name: 'fresh' }, { wait: false })
    const early = visit(fresh.id)
    await settle()
    release()
    expect(await early).toMatchObject({ kind: 'running', generation: 1 })

    const freeze = domain.engine.hang('freeze', { times: 100 })
    domain.clock.advance(61_000)
    await sleepIdleUnits(domain.app)
    await eventually(domain.app, caller, unit.id, 'stopping')
    const late = visit()
    await settle()
    freeze()
    expect(await late).toMatchObject({ kind: 'running' })
  })

  it('is told of a unit that does not wake by it: stopped, ended by itself, over a limit', async () => {
    await stopUnit(domain.app, caller, unit.id)
    expect(await visit()).toEqual({ kind: 'refused', reason: 'stopped' })
    const ended = await makeUnit(domain.app, caller, { name: 'ended' })
    domain.engine.endProcess(ended.id)
    await reconcileMachines(domain.app)
    await eventually(domain.app, caller, ended.id, 'stopped')
    expect(await visit(ended.id)).toEqual({ kind: 'refused', reason: 'exited' })
    for (const reason of ['cap', 'credits'] as const) {
      const limited = await makeUnit(domain.app, caller, { name: `over-${reason}` })
      const record = await findUnitOfAnyTeam(domain.app.db, { id: limited.id, now: domain.app.clock.now() })
      const stopping = record && (await transition(domain.app, record, reason))
      if (stopping) await transition(domain.app, stopping, 'stopped')
      expect(await visit(limited.id)).toEqual({ kind: 'refused', reason })
      expect((await get(limited.id)).state).toBe('stopped')
    }
  })

  it('is told that its unit is gone', async () => {
    await destroyUnit(domain.app, caller, unit.id)
    expect(await visit()).toEqual({ kind: 'refused', reason: 'gone' })
    expect(await visit(newId('unit'))).toEqual({ kind: 'refused', reason: 'gone' })
  })

  it('is told that a wake failed, and the next one tries again', async () => {
    await asleep()
    domain.engine.fail('thaw', 'internal')
    domain.engine.fail('start', 'start_failed')
    expect(await visit()).toEqual({ kind: 'refused', reason: 'failed' })
    expect(await get()).toMatchObject({ state: 'sleeping', stoppedReason: 'provider' })
    expect(await visit()).toMatchObject({ kind: 'running' })
  })

  it('is told to come again when the host has no room', async () => {
    await asleep()
    await hibernate()
    domain.engine.setCapacity({ availableMemoryMb: 0 })
    expect(await inTime(visit())).toMatchObject({ kind: 'waiting', retryAfterS: expect.any(Number) })
    // Before there is room: the wake that the visit began goes on without it.
    await expect.poll(async () => (await get()).state).toBe('sleeping')
  })

  it('does not wake more units than the one that last ran it may run', async () => {
    const mine = await domain.makeCaller({ maxConcurrentUnits: 1 })
    const first = await makeUnit(domain.app, mine, { name: 'first' })
    await sleepUnit(domain.app, mine, first.id, { sleep: '1m', stack: false, now: true })
    await makeUnit(domain.app, mine, { name: 'second' })
    for (const times of [1, 1]) {
      expect(await visit(first.id)).toEqual({ kind: 'refused', reason: 'no-room' })
      // It went on ahead of the answer, and was told to stand still again; a visitor that asks again gets no more of it.
      expect(callsOf('thaw', first.id)).toBe(times)
      expect(machineOf(first.id)).toMatchObject({ state: 'running', frozen: true })
    }
    expect((await getUnit(domain.app, mine, first.id)).state).toBe('sleeping')
  })

  /** Nobody writes anything of the team until the function it answers is called. */
  async function holdTeam(): Promise<() => Promise<void>> {
    const locked = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const held = domain.app.db.transaction().execute(async (db) => {
      await lockTeam(db, caller.teamId)
      locked.resolve()
      await release.promise
    })
    await locked.promise
    return async () => {
      release.resolve()
      await held
    }
  }

  it('is passed on to a frozen unit as soon as that goes on and may, while its row is still being written', async () => {
    await asleep()
    const letGo = await holdTeam()
    expect(await visit()).toMatchObject({ kind: 'running', generation: 1 })
    await letGo()
    await eventually(domain.app, caller, unit.id, 'running')
    expect(callsOf('thaw')).toBe(1)
  })

  it.each([
    ['of the unit', get],
    [
      'at the list',
      async () => (await listUnits(domain.app, caller, unitListQuerySchema.parse({}))).units[0],
    ],
    ['at its stack', async () => (await getStack(domain.app, caller, unit.stackId)).units[0]],
  ])('that was passed on is followed by no look %s that finds it asleep or starting', async (_name, look) => {
    await asleep()
    const letGo = await holdTeam()
    expect(await visit()).toMatchObject({ kind: 'running', generation: 1 })
    const looking = look()
    await letGo()
    expect(await looking).toMatchObject({ state: 'running', stoppedReason: null })
  })

  it('that was passed on holds up a look at its unit for a second at most', async () => {
    await asleep()
    const letGo = await holdTeam()
    expect(await visit()).toMatchObject({ kind: 'running', generation: 1 })
    expect(await inTime(get())).toMatchObject({ state: 'sleeping' })
    await letGo()
    await eventually(domain.app, caller, unit.id, 'running')
  })

  it('that was passed on is told of when its unit cannot be woken after all', async () => {
    await asleep()
    const told: string[] = []
    const listen = (id: string) => told.push(id)
    domain.app.activity.events.on('runEnded', listen)
    const { app } = domain
    const away = () => {
      throw new Error('the database went away just now')
    }
    // The look succeeds, and the change after it does not.
    const db = new Proxy(app.db, {
      get: (target, key) => (key === 'transaction' ? away : Reflect.get(target, key, target)),
    })
    await visitUnit({ ...app, db }, unit.id).catch(() => {})
    await expect.poll(() => told).toEqual([unit.id])
    await expect.poll(() => machineOf(unit.id)?.frozen).toBe(true)
    domain.app.activity.events.off('runEnded', listen)
    expect(await visit()).toMatchObject({ kind: 'running' })
  })

  it('gives up in time on a unit that takes too long', async () => {
    await asleep()
    const release = domain.engine.hang('thaw')
    expect(await inTime(visit())).toEqual({ kind: 'waiting', retryAfterS: 5 })
    release()
    await eventually(domain.app, caller, unit.id, 'running')
  })
})

describe('a unit that stops running', () => {
  it('is told of once, before its machine is touched', async () => {
    const told: string[] = []
    const listen = (id: string) => told.push(id)
    domain.app.activity.events.on('runEnded', listen)
    const release = domain.engine.hang('freeze')
    const sleeping = asleep()
    await expect.poll(() => told).toEqual([unit.id])
    release()
    await sleeping
    await visit()
    await eventually(domain.app, caller, unit.id, 'running')
    await stopUnit(domain.app, caller, unit.id)
    await destroyUnit(domain.app, caller, unit.id)
    expect(told).toEqual([unit.id, unit.id])
    domain.app.activity.events.off('runEnded', listen)
  })
})

describe('visits under way', () => {
  let visits: Sessions
  beforeEach(() => {
    visits = domain.app.activity.sessions
  })
  afterEach(() => visits.end())

  it('keep their unit from being put to sleep, until the last has ended', async () => {
    const endpoints = [newId('endpoint')]
    visits.tell([unit.id], { [unit.id]: endpoints })
    const details = { busy: [unit.id], endpoints }
    await expect(asleep()).rejects.toMatchObject({ status: 409, details })
    visits.tell([])
    await asleep()
    expect((await get()).state).toBe('sleeping')
  })

  it('keep it from falling asleep, also where their use was not recorded', async () => {
    for (let count = 0; count < 5; count++) {
      visits.tell([unit.id])
      domain.clock.advance(15_000)
      await settle(1)
    }
    await sleepIdleUnits(domain.app)
    expect((await get()).state).toBe('running')
  })

  it('are none once their gateway has gone silent', async () => {
    visits.tell([unit.id])
    domain.clock.advance(21_000)
    await settle(1)
    await asleep()
    expect(domain.app.activity.uses.ids()).toEqual([])
  })
})

describe('uses that the gateway tells of', () => {
  it('are recorded, and it hears which units run', async () => {
    const stopped = await makeUnit(domain.app, caller, { name: 'stopped' })
    await stopUnit(domain.app, caller, stopped.id)
    const before = Date.parse((await get()).sleepsAt ?? '')
    domain.clock.advance(30_000)
    const ids = [unit.id, stopped.id, newId('unit')]
    expect(await recordUses(domain.app, ids)).toEqual(new Set([unit.id]))
    expect(Date.parse((await get()).sleepsAt ?? '') - before).toBeGreaterThan(29_000)
  })
})
