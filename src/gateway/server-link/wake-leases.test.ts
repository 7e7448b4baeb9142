// When a request may be forwarded without asking the server, and what the server is told. The server is a fake.

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import type { Visited } from '../../contract/visit.ts'
import { silentLog } from '../../lib/log.ts'
import type { Route } from '../route.ts'
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
/** Unit ids of wake requests. */
let wakes: string[]
/** Unit ids per use report, and per report of long-running visits. */
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

describe('a wake lease', () => {
  it('does not exist before the server has confirmed the unit, even if its route says running', async () => {
    expect(awake(routeOf())).toBeNull()
    expect(await wake(routeOf())).toEqual({ kind: 'running', route: routeOf() })
    expect(awake(routeOf())).toEqual(routeOf())
    expect(wakes).toEqual([UNIT])
  })

  it('is valid for 20 seconds', async () => {
    await wake(routeOf())
    clock.advance(19_000)
    expect(awake(routeOf())).not.toBeNull()
    clock.advance(2000)
    expect(awake(routeOf())).toBeNull()
  })

  it('leads to the run that was woken even if the route is older', async () => {
    onUse = async () => ({ ...running, generation: 2 })
    const asleep = routeOf({ state: 'sleeping', stoppedReason: 'idle' })
    const woken = routeOf({ generation: 2 })
    expect(await wake(asleep)).toEqual({ kind: 'running', route: woken })
    expect(awake(asleep)).toEqual(woken)
    expect(awake(routeOf())).toEqual(woken)
  })

  it('is not used for a route that is newer', async () => {
    await wake(routeOf())
    expect(awake(routeOf({ generation: 2 }))).toBeNull()
  })

  it('ends when the unit stops and when the event stream was interrupted', async () => {
    await wake(routeOf())
    watcher.onRunEnded(UNIT)
    expect(awake(routeOf())).toBeNull()
    await wake(routeOf())
    watcher.onDisconnected()
    watcher.onConnected()
    expect(awake(routeOf())).toBeNull()
  })

  it('is not granted if the run ended while the server was responding', async () => {
    const answer = Promise.withResolvers<Visited>()
    onUse = () => answer.promise
    const asking = wake(routeOf())
    await settle()
    watcher.onRunEnded(UNIT)
    answer.resolve(running)
    await asking
    expect(awake(routeOf())).toBeNull()
  })

  it('can be invalidated after a failed connection, at most once a second', async () => {
    await wake(routeOf())
    doubt()
    expect(awake(routeOf())).not.toBeNull()
    clock.advance(1001)
    doubt()
    expect(awake(routeOf())).toBeNull()
  })

  it('is not granted for a unit that may not wake, and the reason is returned', async () => {
    const refused: Visited = { kind: 'refused', reason: 'stopped' }
    onUse = async () => refused
    expect(await wake(routeOf({ state: 'stopped' }))).toEqual(refused)
    expect(awake(routeOf({ state: 'stopped' }))).toBeNull()
  })
})

describe('while the server is unavailable', () => {
  it('visits to a running unit are forwarded at once', async () => {
    watcher.onDisconnected()
    expect(awake(routeOf())).toEqual(routeOf())
    expect(awake(routeOf({ state: 'sleeping' }))).toBeNull()
    expect(wakes).toEqual([])
  })

  it('the wake of a sleeping unit is retried until the server responds', async () => {
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

  it('the wake of a sleeping unit gives up eventually', async () => {
    onUse = async () => {
      throw new Error('away')
    }
    const waking = wake(routeOf({ state: 'sleeping' }))
    for (let count = 0; count < 12; count++) await nextRound(5000)
    expect(await waking).toMatchObject({ kind: 'waiting' })
  })

  it('a wake request for a unit that seems to run delays its visits by at most one second', async () => {
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
  it('is told of a long visit within 200 ms and of the end of the last one at once', async () => {
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

  it('is not told of short visits', async () => {
    for (let count = 0; count < 10; count++) {
      const end = use.activity.begin(UNIT, 'endpoint')
      await nextRound(50)
      end()
      await nextRound(60)
    }
    expect(lasting).toEqual([])
  })

  it('is told of long visits repeatedly, so that it knows that the gateway is alive', async () => {
    use.activity.begin(UNIT, 'endpoint')
    await passSeconds(20)
    expect(lasting.length).toBeGreaterThanOrEqual(3)
    expect(lasting.length).toBeLessThanOrEqual(6)
  })

  it('is told of use every five seconds during a visit and once after it', async () => {
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

  it('is told of use while bytes pass on a connection, which is not a long visit', async () => {
    await passSeconds(30, () => use.activity.touch(UNIT))
    expect(used.length).toBeGreaterThanOrEqual(5)
    used = []
    await passSeconds(30)
    expect(used.length).toBeLessThanOrEqual(1)
    expect(lasting).toEqual([])
  })

  it('is not told of units without visits', async () => {
    await wake(routeOf())
    await passSeconds(30)
    expect([...used, ...lasting]).toEqual([])
  })

  it('is told everything again after a disconnect', async () => {
    use.activity.begin(UNIT, 'endpoint')
    await passSeconds(2)
    watcher.onDisconnected()
    watcher.onConnected()
    await nextRound()
    expect(lasting).toEqual([[UNIT], [UNIT]])
  })

  it('is told of a use again if it could not record it, and visits continue', async () => {
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
