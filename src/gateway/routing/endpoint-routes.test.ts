import { beforeEach, describe, expect, it } from 'vitest'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import { createEndpointRoutes } from './endpoint-routes.ts'
import type { Route, Routes } from '../route.ts'

const routeOf = (unitId: string): Route => ({
  endpointId: `ep_${unitId}`,
  unitId,
  protocol: 'http',
  secretHash: null,
  port: 80,
  address: '10.0.0.1',
  state: 'running',
  stoppedReason: null,
  frozen: false,
  generation: 1,
})

let clock: TestClock
let rows: Map<string, Route>
/** The names of each database query. */
let asked: string[][]
/** Runs before each query returns; throws to simulate an unavailable database. */
let trouble: () => Promise<void>
let routes: Routes

beforeEach(() => {
  clock = createTestClock()
  rows = new Map([
    ['web', routeOf('one')],
    ['app', routeOf('two')],
  ])
  asked = []
  trouble = async () => {}
  routes = createEndpointRoutes({
    clock,
    async findAll(names) {
      asked.push(names)
      await trouble()
      return names.flatMap((name) => {
        const route = rows.get(name)
        return route ? [{ ...route, name }] : []
      })
    },
  })
})

const away = async () => {
  throw new Error('the database is away')
}
const settle = async () => await new Promise((resolve) => setTimeout(resolve, 5))

describe('a route', () => {
  it('is cached for 250 ms', async () => {
    expect(await routes.find('web')).toEqual(routeOf('one'))
    for (let count = 0; count < 100; count++) await routes.find('web')
    expect(asked).toEqual([['web']])
    clock.advance(251)
    await routes.find('web')
    expect(asked).toEqual([['web'], ['web']])
  })

  it('in constant use is refreshed in the background without delaying requests', async () => {
    await routes.find('web')
    const hang = Promise.withResolvers<void>()
    trouble = () => hang.promise
    clock.advance(130)
    for (let count = 0; count < 100; count++) expect((await routes.find('web'))?.unitId).toBe('one')
    await settle()
    expect(asked).toHaveLength(2)
    rows.set('web', routeOf('other'))
    hang.resolve()
    await settle()
    expect((await routes.find('web'))?.unitId).toBe('other')
  })

  it('is queried once for concurrent requests, and several names share one query', async () => {
    const names = [...Array.from({ length: 50 }, () => 'web'), 'app', 'nobody']
    const found = await Promise.all(names.map((name) => routes.find(name)))
    expect(asked).toEqual([['web', 'app', 'nobody']])
    expect(found.slice(0, 51).map((route) => route?.unitId)).toEqual([
      ...Array.from({ length: 50 }, () => 'one'),
      'two',
    ])
    expect(found[51]).toBeNull()
  })

  it('that was deleted or moved is updated within half a second (reliability S20)', async () => {
    await routes.find('web')
    await routes.find('app')
    rows.delete('web')
    rows.set('app', { ...routeOf('two'), port: 81 })
    clock.advance(251)
    expect(await routes.find('web')).toBeNull()
    expect((await routes.find('app'))?.port).toBe(81)
  })

  it('that does not exist is not cached, so a new name works at once', async () => {
    expect(await routes.find('new')).toBeNull()
    rows.set('new', routeOf('three'))
    expect((await routes.find('new'))?.unitId).toBe('three')
  })

  it('is as old as its query, however late the result arrived', async () => {
    trouble = async () => clock.advance(300)
    await routes.find('web')
    trouble = async () => {}
    rows.delete('web')
    expect(await routes.find('web')).toBeNull()
  })
})

describe('while the database is unavailable', () => {
  it('the last known routes stay in use and are updated when it is back', async () => {
    await routes.find('web')
    trouble = away
    for (let count = 0; count < 5; count++) {
      clock.advance(60_000)
      expect((await routes.find('web'))?.unitId).toBe('one')
    }
    trouble = async () => {}
    rows.set('web', routeOf('other'))
    clock.advance(251)
    await routes.find('web')
    await settle()
    expect((await routes.find('web'))?.unitId).toBe('other')
  })

  it('an unknown name is an error, not a missing route', async () => {
    trouble = away
    await expect(routes.find('web')).rejects.toThrow('away')
    trouble = async () => {}
    expect((await routes.find('web'))?.unitId).toBe('one')
  })

  it('a deleted route does not reappear', async () => {
    await routes.find('web')
    rows.delete('web')
    clock.advance(251)
    expect(await routes.find('web')).toBeNull()
    trouble = away
    await expect(routes.find('web')).rejects.toThrow('away')
  })

  it('queries are retried at most four times a second for any number of requests', async () => {
    await routes.find('web')
    trouble = away
    clock.advance(251)
    for (let count = 0; count < 100; count++) await routes.find('web')
    expect(asked).toHaveLength(2)
    clock.advance(251)
    for (let count = 0; count < 100; count++) await routes.find('web')
    await settle()
    expect(asked).toHaveLength(3)
  })

  it('and a query hangs, only the first request waits for it, for at most 400 ms', async () => {
    await routes.find('web')
    const hang = Promise.withResolvers<void>()
    trouble = () => hang.promise
    clock.advance(251)
    const first = routes.find('web')
    await settle()
    clock.advance(401)
    expect((await first)?.unitId).toBe('one')
    clock.advance(1000)
    expect((await routes.find('web'))?.unitId).toBe('one')
    rows.set('web', routeOf('other'))
    hang.resolve()
    await settle()
    expect((await routes.find('web'))?.unitId).toBe('other')
  })
})
