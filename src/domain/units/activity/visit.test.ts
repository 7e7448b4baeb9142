// What a visit is answered in every state of its unit, and what it does to the unit.

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
import { reconcileMachines } from '../reconcile.ts'
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

/** From frozen to stopped. */
async function hibernate(): Promise<void> {
  domain.clock.advance(11 * 60_000)
  await hibernateFrozenUnits(domain.app)
  const machine = () => domain.engine.machines().find(({ id }) => id === unit.id)
  await expect.poll(() => machine()?.state).not.toBe('running')
}

/** Advances the clock until the promise settles. */
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
  it('to a running unit counts as a use', async () => {
    const before = Date.parse(unit.sleepsAt ?? '')
    domain.clock.advance(30_000)
    expect(await visit()).toEqual({ kind: 'running', generation: 1, address: addressOf(unit) })
    expect(Date.parse((await get()).sleepsAt ?? '') - before).toBeGreaterThan(29_000)
  })

  it('thaws a frozen unit within its run, and starts a hibernated one in a new run', async () => {
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

  it('wakes the whole stack where it sleeps together', async () => {
    const other = await makeUnit(domain.app, caller, { name: 'db' }, { stack: unit.name })
    await asleep(unit.id, true)
    expect((await get(other.id)).state).toBe('sleeping')
    expect(await visit()).toMatchObject({ kind: 'running' })
    await eventually(domain.app, caller, other.id, 'running')
  })

  it('wakes its unit once for a hundred concurrent visits', async () => {
    await asleep()
    const answers = await Promise.all(Array.from({ length: 100 }, () => visit()))
    for (const answer of answers) expect(answer).toMatchObject({ kind: 'running', generation: 1 })
    expect(callsOf('thaw')).toBe(1)
  })

  it('waits for a unit that is being created, falls asleep or wakes', async () => {
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

  it('is told why a unit does not wake: stopped, exited or over a limit', async () => {
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

  it('is told that its unit is destroyed', async () => {
    await destroyUnit(domain.app, caller, unit.id)
    expect(await visit()).toEqual({ kind: 'refused', reason: 'gone' })
    expect(await visit(newId('unit'))).toEqual({ kind: 'refused', reason: 'gone' })
  })

  it('is told that a wake failed, and the next visit tries again', async () => {
    await asleep()
    domain.engine.fail('thaw', 'internal')
    domain.engine.fail('start', 'start_failed')
    expect(await visit()).toEqual({ kind: 'refused', reason: 'failed' })
    expect(await get()).toMatchObject({ state: 'sleeping', stoppedReason: 'provider' })
    expect(await visit()).toMatchObject({ kind: 'running' })
  })

  it('is told to retry when the host has no memory', async () => {
    await asleep()
    await hibernate()
    domain.engine.setCapacity({ availableMemoryMb: 0 })
    expect(await inTime(visit())).toMatchObject({ kind: 'waiting', retryAfterS: expect.any(Number) })
    // Before there is room: the wake that the visit began goes on without it, until its own time is over.
    const ended = async () => await expect.poll(async () => (await get()).state).toBe('sleeping')
    await inTime(ended())
  })

  it('does not wake a unit beyond the concurrency limit of the credential that last ran it', async () => {
    const mine = await domain.makeCaller({ maxConcurrentUnits: 1 })
    const first = await makeUnit(domain.app, mine, { name: 'first' })
    await sleepUnit(domain.app, mine, first.id, { sleep: '1m', stack: false, now: true })
    await makeUnit(domain.app, mine, { name: 'second' })
    for (const times of [1, 1]) {
      expect(await visit(first.id)).toEqual({ kind: 'refused', reason: 'no-room' })
      // It was thawed before the answer and frozen again. Further visits do not thaw it again.
      expect(callsOf('thaw', first.id)).toBe(times)
      expect(machineOf(first.id)).toMatchObject({ state: 'running', frozen: true })
    }
    expect((await getUnit(domain.app, mine, first.id)).state).toBe('sleeping')
  })

  /** Holds the lock of the team. Returns a function that releases it. */
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

  it('reaches a frozen unit once it is thawed and admitted, before its row is written', async () => {
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
  ])('to a thawed unit makes reads %s wait for its new state', async (_name, look) => {
    await asleep()
    const letGo = await holdTeam()
    expect(await visit()).toMatchObject({ kind: 'running', generation: 1 })
    const looking = look()
    await letGo()
    expect(await looking).toMatchObject({ state: 'running', stoppedReason: null })
  })

  it('to a thawed unit delays reads of the unit by one second at most', async () => {
    await asleep()
    const letGo = await holdTeam()
    expect(await visit()).toMatchObject({ kind: 'running', generation: 1 })
    expect(await inTime(get())).toMatchObject({ state: 'sleeping' })
    await letGo()
    await eventually(domain.app, caller, unit.id, 'running')
  })

  it('to a unit that cannot be woken after all is told that the run has ended', async () => {
    await asleep()
    const told: string[] = []
    const listen = (id: string) => told.push(id)
    domain.app.activity.events.on('runEnded', listen)
    const { app } = domain
    const away = () => {
      throw new Error('the database went away just now')
    }
    // The read succeeds, and the write after it fails.
    const db = new Proxy(app.db, {
      get: (target, key) => (key === 'transaction' ? away : Reflect.get(target, key, target)),
    })
    await visitUnit({ ...app, db }, unit.id).catch(() => {})
    await expect.poll(() => told).toEqual([unit.id])
    await expect.poll(() => machineOf(unit.id)?.frozen).toBe(true)
    domain.app.activity.events.off('runEnded', listen)
    expect(await visit()).toMatchObject({ kind: 'running' })
  })

  it('gives up after its timeout when a unit takes too long to wake', async () => {
    await asleep()
    const release = domain.engine.hang('thaw')
    expect(await inTime(visit())).toEqual({ kind: 'waiting', retryAfterS: 5 })
    release()
    await eventually(domain.app, caller, unit.id, 'running')
  })
})

describe('the end of a run', () => {
  it('is announced once, before the machine is changed', async () => {
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

describe('open sessions of a unit', () => {
  const at = (hostId: string, worker = 0) => ({ hostId, worker })
  let visits: Sessions
  beforeEach(() => {
    visits = domain.app.activity.sessions
  })
  afterEach(() => {
    visits.end('here')
    visits.end('there')
  })

  it('keep it from being put to sleep until the last one has ended', async () => {
    const endpoints = [newId('endpoint')]
    visits.tell(at('here'), [unit.id], { [unit.id]: endpoints })
    const details = { busy: [unit.id], endpoints }
    await expect(asleep()).rejects.toMatchObject({ status: 409, details })
    visits.tell(at('here'), [])
    await asleep()
    expect((await get()).state).toBe('sleeping')
  })

  it('keep it from falling asleep, also when their use was not recorded', async () => {
    for (let count = 0; count < 5; count++) {
      visits.tell(at('here'), [unit.id])
      domain.clock.advance(15_000)
      await settle(1)
    }
    await sleepIdleUnits(domain.app)
    expect((await get()).state).toBe('running')
  })

  it('of two gateways do not replace each other, and end with their own gateway', async () => {
    const [here, there] = [newId('endpoint'), newId('endpoint')]
    visits.tell(at('here'), [unit.id], { [unit.id]: [here] })
    visits.tell(at('there'), [unit.id], { [unit.id]: [there] })
    expect(visits.endpointsOf(unit.id)).toEqual([here, there])
    visits.tell(at('here'), [])
    expect(domain.app.activity.uses.of(unit.id)).toBe(1)
    visits.tell(at('here'), [unit.id])
    domain.clock.advance(15_000)
    visits.tell(at('there'), [unit.id])
    domain.clock.advance(6_000)
    await settle(1)
    expect(domain.app.activity.uses.of(unit.id)).toBe(1)
    visits.end('there')
    await asleep()
    expect(domain.app.activity.uses.ids()).toEqual([])
  })

  it('of two gateways on one host do not replace each other, and end with their host', async () => {
    visits.tell(at('here'), [unit.id])
    visits.tell(at('here', 1), [unit.id])
    expect(domain.app.activity.uses.of(unit.id)).toBe(2)
    visits.tell(at('here'), [])
    await expect(asleep()).rejects.toMatchObject({ status: 409 })
    visits.tell(at('here'), [unit.id])
    visits.end('here')
    await asleep()
    expect(domain.app.activity.uses.ids()).toEqual([])
  })

  it('end when their gateway has gone silent', async () => {
    visits.tell(at('here'), [unit.id])
    domain.clock.advance(21_000)
    await settle(1)
    await asleep()
    expect(domain.app.activity.uses.ids()).toEqual([])
  })
})

describe('uses that the gateway reports', () => {
  it('are recorded, and the gateway is told which units run', async () => {
    const stopped = await makeUnit(domain.app, caller, { name: 'stopped' })
    await stopUnit(domain.app, caller, stopped.id)
    const before = Date.parse((await get()).sleepsAt ?? '')
    domain.clock.advance(30_000)
    const ids = [unit.id, stopped.id, newId('unit')]
    expect(await recordUses(domain.app, ids)).toEqual(new Set([unit.id]))
    expect(Date.parse((await get()).sleepsAt ?? '') - before).toBeGreaterThan(29_000)
  })
})
