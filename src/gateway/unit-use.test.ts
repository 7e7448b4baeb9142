// When a visit may go on without asking, and what the server is told, against a server made up for it.

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestClock, type TestClock } from '../../test/support/clock.ts'
import type { Visited } from '../contract/visit.ts'
import { silentLog } from '../lib/log.ts'
import type { Route } from './route.ts'
import { createUnitUse, type UnitUse } from './unit-use.ts'
import type { DepartureWatcher, WakeServer } from './wake-client.ts'

const UNIT = 'unit_1'
const running: Visited = { kind: 'running', generation: 1, address: '10.0.0.1' }
const routeOf = (more: Partial<Route> = {}): Route => ({
  endpointId: 'ep_1',
  unitId: UNIT,
  protocol: 'http',
  secretHash: null,
  port: 80,
  address: '10.0.0.1',
  state: 'running',
  stoppedReason: null,
  generation: 1,
  ...more,
})

let clock: TestClock
let use: UnitUse
let watcher: DepartureWatcher
/** Units asked for. */
let wakes: string[]
let told: { open: string[]; used: string[] }[]
let onUse: () => Promise<Visited>
let onVisits: () => Promise<void>

beforeEach(async () => {
  clock = createTestClock()
  wakes = []
  told = []
  onUse = async () => running
  onVisits = async () => {}
  const ask = async (operation: string, request: { unitId: string; open: string[]; used: string[] }) => {
    if (operation === 'use') {
      wakes.push(request.unitId)
      return await onUse()
    }
    told.push(request)
    await onVisits()
    return { awake: request.used }
  }
  const server = {
    ask,
    async follow(given: DepartureWatcher, signal: AbortSignal) {
      watcher = given
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    },
  } as unknown as WakeServer
  use = createUnitUse({ server, clock, log: silentLog })
  watcher.onThere()
})
afterEach(async () => await use.stop())

const settle = async () => await new Promise((resolve) => setTimeout(resolve, 5))
const nextRound = async (ms = 101) => {
  clock.advance(ms)
  await settle()
}
const { awake, wake, doubt } = {
  awake: (route: Route) => use.waker.awake(route),
  wake: (route: Route) => use.waker.wake(route),
  doubt: () => use.waker.doubt(UNIT),
}

describe('a visit', () => {
  it('is not passed on before its unit has been made sure of, though it seems to run', async () => {
    expect(awake(routeOf())).toBeNull()
    expect(await wake(routeOf())).toEqual({ kind: 'running', route: routeOf() })
    expect(awake(routeOf())).toEqual(routeOf())
    expect(wakes).toEqual([UNIT])
  })

  it('of a unit that was made sure of asks nobody for twenty seconds, and then again', async () => {
    await wake(routeOf())
    clock.advance(19_000)
    expect(awake(routeOf())).not.toBeNull()
    clock.advance(2000)
    expect(awake(routeOf())).toBeNull()
  })

  it('goes to the run that was woken, though its route is older', async () => {
    onUse = async () => ({ ...running, generation: 2 })
    const asleep = routeOf({ state: 'sleeping', stoppedReason: 'idle' })
    const woken = routeOf({ generation: 2 })
    expect(await wake(asleep)).toEqual({ kind: 'running', route: woken })
    expect(awake(asleep)).toEqual(woken)
    expect(awake(routeOf())).toEqual(woken)
  })

  it('does not go to a run that is older than its route', async () => {
    await wake(routeOf())
    expect(awake(routeOf({ generation: 2 }))).toBeNull()
  })

  it('asks anew once its unit has stopped running, and once the server may have missed to say so', async () => {
    await wake(routeOf())
    watcher.onDeparture(UNIT)
    expect(awake(routeOf())).toBeNull()
    await wake(routeOf())
    watcher.onAway()
    watcher.onThere()
    expect(awake(routeOf())).toBeNull()
  })

  it('does not count on an answer that came after news of the unit’s end', async () => {
    const answer = Promise.withResolvers<Visited>()
    onUse = () => answer.promise
    const asking = wake(routeOf())
    await settle()
    watcher.onDeparture(UNIT)
    answer.resolve(running)
    await asking
    expect(awake(routeOf())).toBeNull()
  })

  it('that found nobody at home asks anew, once a second at most', async () => {
    await wake(routeOf())
    doubt()
    expect(awake(routeOf())).not.toBeNull()
    clock.advance(1001)
    doubt()
    expect(awake(routeOf())).toBeNull()
  })

  it('hears why its unit does not wake', async () => {
    const refused: Visited = { kind: 'refused', reason: 'stopped' }
    onUse = async () => refused
    expect(await wake(routeOf({ state: 'stopped' }))).toEqual(refused)
    expect(awake(routeOf({ state: 'stopped' }))).toBeNull()
  })
})

describe('while the server is away', () => {
  it('visits of a unit that runs are passed on at once', async () => {
    watcher.onAway()
    expect(awake(routeOf())).toEqual(routeOf())
    expect(awake(routeOf({ state: 'sleeping' }))).toBeNull()
    expect(wakes).toEqual([])
  })

  it('a unit that sleeps is asked for until somebody answers', async () => {
    let isAway = true
    onUse = async () => {
      if (isAway) throw new Error('away')
      return running
    }
    const waking = wake(routeOf({ state: 'sleeping' }))
    for (let count = 0; count < 4; count++) await nextRound(251)
    isAway = false
    await nextRound(251)
    expect(await waking).toEqual({ kind: 'running', route: routeOf() })
    expect(wakes.length).toBeGreaterThan(3)
  })

  it('nobody waits for ever', async () => {
    onUse = async () => {
      throw new Error('away')
    }
    const waking = wake(routeOf({ state: 'sleeping' }))
    for (let count = 0; count < 12; count++) await nextRound(5000)
    expect(await waking).toMatchObject({ kind: 'waiting' })
  })

  it('a server that says nothing of a unit that seems to run holds its visits up for a second', async () => {
    onUse = () => new Promise(() => {})
    const asking = wake(routeOf())
    await nextRound(1001)
    expect(await asking).toEqual({ kind: 'running', route: routeOf() })
    expect(awake(routeOf())).toBeNull()
  })
})

describe('the server', () => {
  it('hears within a tenth of a second of visits that last, and of their end', async () => {
    const end = use.activity.begin(UNIT)
    const endOther = use.activity.begin(UNIT)
    await nextRound()
    expect(told).toEqual([{ open: [UNIT], used: [UNIT] }])
    end()
    await nextRound()
    expect(told).toHaveLength(1)
    endOther()
    await nextRound()
    expect(told.slice(1)).toEqual([{ open: [], used: [] }])
  })

  it('hears of use every five seconds while a visit lasts, or bytes pass, and once after', async () => {
    await wake(routeOf())
    const end = use.activity.begin(UNIT)
    for (let second = 0; second < 30; second++) await nextRound(1000)
    expect(told.filter(({ used }) => used.includes(UNIT)).length).toBeGreaterThanOrEqual(5)
    expect(told.filter(({ used }) => used.includes(UNIT)).length).toBeLessThanOrEqual(7)
    expect(awake(routeOf())).not.toBeNull()
    await nextRound(1000)
    end()
    told = []
    for (let second = 0; second < 30; second++) await nextRound(1000)
    expect(told.filter(({ used }) => used.includes(UNIT))).toHaveLength(1)
    told = []
    for (let second = 0; second < 30; second++) {
      use.activity.touch(UNIT)
      await nextRound(1000)
    }
    expect(told.filter(({ used }) => used.includes(UNIT)).length).toBeGreaterThanOrEqual(5)
    expect(told.every(({ open }) => open.length === 0)).toBe(true)
  })

  it('hears nothing of units nobody visits', async () => {
    await wake(routeOf())
    for (let second = 0; second < 30; second++) await nextRound(1000)
    expect(told).toEqual([])
  })

  it('hears everything anew after it was away', async () => {
    use.activity.begin(UNIT)
    await nextRound()
    watcher.onAway()
    await nextRound(1000)
    expect(told).toHaveLength(1)
    watcher.onThere()
    await nextRound()
    expect(told[1]?.open).toEqual([UNIT])
  })

  it('that cannot record a use is told it again, and visits go on', async () => {
    await wake(routeOf())
    onVisits = async () => {
      throw new Error('not now')
    }
    use.activity.begin(UNIT)
    for (let second = 0; second < 6; second++) await nextRound(1000)
    const tries = told.length
    expect(tries).toBeGreaterThan(1)
    onVisits = async () => {}
    for (let second = 0; second < 3; second++) await nextRound(1000)
    expect(told.length).toBeGreaterThan(tries)
    expect(awake(routeOf())).not.toBeNull()
  })
})
