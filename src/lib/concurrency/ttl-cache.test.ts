import { expect, test } from 'vitest'
import { createTestClock } from '../../../test/support/clock.ts'
import { cachedFor } from './ttl-cache.ts'

const clock = createTestClock()

test('cachedFor shares one read among concurrent callers and reads again only after its TTL', async () => {
  let readings = 0
  const read = cachedFor({ clock, forMs: 200, withinMs: 1000 }, async () => ++readings)
  expect(await Promise.all([read(), read(), read()])).toEqual([1, 1, 1])
  expect(await read()).toBe(1)
  clock.advance(201)
  expect(await read()).toBe(2)
})

test('cachedFor returns null for a read that fails or times out, and then reads again', async () => {
  const outcomes = [
    async () => await Promise.reject<number>(new Error('away')),
    async () => await new Promise<number>(() => {}),
    async () => 3,
  ]
  const read = cachedFor({ clock, forMs: 200, withinMs: 1000 }, async () => await outcomes.shift()?.())
  expect(await read()).toBe(null)
  clock.advance(201)
  const hanging = read()
  clock.advance(1001)
  expect(await hanging).toBe(null)
  clock.advance(201)
  expect(await read()).toBe(3)
})
