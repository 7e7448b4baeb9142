// When a visit may go on without asking, and what the server is told, against a server made up for it.

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import type { Visited } from '../../contract/visit.ts'
import { silentLog } from '../../lib/log.ts'
import type { Route } from '../routing/route.ts'
import { createWakeLeases, type WakeLeases } from './wake-leases.ts'
import type { RunEndWatcher, ServerClient } from './client.ts'

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
  frozen: false,
  generation: 1,
  ...more,
})

let clock: TestClock
let use: WakeLeases
let watcher: RunEndWatcher
/** Units asked for. */
let wakes: string[]
/** Units told to be in use, message by message, and those told to have visits that last. */
let used: string[][]
let lasting: string[][]
let onUse: () => Promise<Visited>
let onUsed: () => Promise<void>

beforeEach(async () => {
  clock = createTestClock()
  wakes = []
  used = []
  lasting = []
  onUse = async () => running
  onUsed = async () => {}
  const ask = async (operation: string, { unitId, unitIds }: { unitId: string; unitIds: string[] }) => {
    if (operation === 'use') {
      wakes.push(unitId)
      return await onUse()
    }
    if (operation === 'visits') return { of: lasting.push(unitIds) }
    used.push(unitIds)
    await onUsed()
    return { awake: unitIds }
  }
  const server = {
    ask,
    async follow(given: RunEndWatcher, signal: AbortSignal) {
      watcher = given
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    },
  } as unknown as ServerClient
  use = createWakeLeases({ server, clock, log: silentLog })
  watcher.onConnected()
})
afterEach(async () => await use.stop())

const settle = async () => await new Promise((resolve) => setTimeout(resolve, 5))
const nextRound = async (ms = 101) => {
  clock.advance(ms)
  await settle()
}
const { awake, wake, doubt } = {
  awake: (route: Route) => use.waker.findLease(route),
  wake: (route: Route) => use.waker.wake(route),
  doubt: () => use.waker.invalidateLease(UNIT),
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
    watcher.onRunEnded(UNIT)
    expect(awake(routeOf())).toBeNull()
    await wake(routeOf())
    watcher.onDisconnected()
    watcher.onConnected()
    expect(awake(routeOf())).toBeNull()
  })

  it('does not count on an answer that came after news of the unit’s end', async () => {
    const answer = Promise.withResolvers<Visited>()
    onUse = () => answer.promise
    const asking = wake(routeOf())
    await settle()
    watcher.onRunEnded(UNIT)
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
    watcher.onDisconnected()
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

const passSeconds = async (count: number, eachSecond = () => {}) => {
  for (let second = 0; second < count; second++) {
    eachSecond()
    await nextRound(1001)
  }
}

describe('the server', () => {
  it('hears within a fifth of a second of a visit that lasts, and at once of the end of the last', async () => {
    const end = use.activity.begin(UNIT, 'endpoint')
    const endOther = use.activity.begin(UNIT, 'endpoint')
    await nextRound()
    await nextRound()
    expect(lasting).toEqual([[UNIT]])
    end()
    await settle()
    expect(lasting).toEqual([[UNIT]])
    endOther()
    await settle()
    expect(lasting).toEqual([[UNIT], []])
  })

  it('hears nothing of visits that are over before they last', async () => {
    for (let count = 0; count < 10; count++) {
      const end = use.activity.begin(UNIT, 'endpoint')
      await nextRound(50)
      end()
      await nextRound(60)
    }
    expect(lasting).toEqual([])
  })

  it('hears of visits that last again and again, so that it knows that somebody tells', async () => {
    use.activity.begin(UNIT, 'endpoint')
    await passSeconds(20)
    expect(lasting.length).toBeGreaterThanOrEqual(3)
    expect(lasting.length).toBeLessThanOrEqual(6)
  })

  it('hears of use every five seconds while a visit lasts, and once after', async () => {
    await wake(routeOf())
    const end = use.activity.begin(UNIT, 'endpoint')
    await passSeconds(30)
    expect(used.length).toBeGreaterThanOrEqual(4)
    expect(used.length).toBeLessThanOrEqual(7)
    expect(awake(routeOf())).not.toBeNull()
    await nextRound(1001)
    end()
    used = []
    await passSeconds(30)
    expect(used).toEqual([[UNIT]])
  })

  it('hears of use as long as bytes pass on a connection, which is no visit that lasts', async () => {
    await passSeconds(30, () => use.activity.touch(UNIT))
    expect(used.length).toBeGreaterThanOrEqual(5)
    used = []
    await passSeconds(30)
    expect(used.length).toBeLessThanOrEqual(1)
    expect(lasting).toEqual([])
  })

  it('hears nothing of units nobody visits', async () => {
    await wake(routeOf())
    await passSeconds(30)
    expect([...used, ...lasting]).toEqual([])
  })

  it('hears everything anew after it was away', async () => {
    use.activity.begin(UNIT, 'endpoint')
    await passSeconds(2)
    watcher.onDisconnected()
    watcher.onConnected()
    await nextRound()
    expect(lasting).toEqual([[UNIT], [UNIT]])
  })

  it('that cannot record a use is told of it again, and visits go on', async () => {
    await wake(routeOf())
    onUsed = async () => {
      throw new Error('not now')
    }
    use.activity.begin(UNIT, 'endpoint')
    await passSeconds(10)
    expect(used.length).toBeGreaterThan(3)
    expect(awake(routeOf())).not.toBeNull()
    onUsed = async () => {}
    used = []
    await passSeconds(3)
    expect(used).toEqual([[UNIT]])
  })
})
