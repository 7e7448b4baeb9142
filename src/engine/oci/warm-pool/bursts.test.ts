import { expect, it } from 'vitest'
import { type Burst, MAX_READY, readyFor, withCreate } from './bursts.ts'

/** Creates at these seconds. */
const burstsOf = (...seconds: number[]) =>
  seconds.reduce<Burst[]>((bursts, second) => withCreate(bursts, second * 1000, second * 1000 - 600_000), [])

it('one burst changes nothing, a second one of the same size has as many ready', () => {
  expect(readyFor(burstsOf(0, 0.1, 0.2), 1)).toBe(1)
  expect(readyFor(burstsOf(0, 0.1, 0.2, 30, 30.1, 30.2), 1)).toBe(3)
  expect(readyFor(burstsOf(0, 0.1, 0.2, 30, 60), 1)).toBe(1)
})

it('a burst is forgotten after a while, and none has too many ready', () => {
  const many = Array.from({ length: 50 }, (_, index) => index / 100)
  expect(readyFor(burstsOf(...many, ...many.map((second) => second + 30)), 1)).toBe(MAX_READY)
  expect(readyFor(burstsOf(...many, ...many.map((second) => second + 30), 700), 1)).toBe(1)
  expect(burstsOf(...Array.from({ length: 100 }, (_, index) => index * 5)).length).toBeLessThanOrEqual(20)
})
