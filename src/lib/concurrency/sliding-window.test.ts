import fc from 'fast-check'
import { expect, test } from 'vitest'
import { slidingWindow } from './sliding-window.ts'

const MINUTE = 60_000

/** Makes one attempt at each time and returns those that were allowed. */
function passing(limit: number, times: number[]): number[] {
  const window = slidingWindow(limit, MINUTE)
  return times.filter((time) => {
    if (window.waitMs('key', time) > 0) return false
    window.record('key', time)
    return true
  })
}

test('the sliding window allows as many calls as its limit', () => {
  expect(passing(3, [0, 0, 0, 0, 1])).toHaveLength(3)
})

test('the sliding window also limits a burst across the boundary of two minutes', () => {
  const burst = [...Array<number>(3).fill(MINUTE - 1), ...Array<number>(3).fill(MINUTE + 1)]
  expect(passing(3, burst)).toHaveLength(3)
})

test('the returned waiting time is exact to the millisecond', () => {
  const window = slidingWindow(2, MINUTE)
  window.record('key', 100)
  window.record('key', 500)
  const waitMs = window.waitMs('key', 1000)
  expect(waitMs).toBe(MINUTE + 100 - 1000)
  expect(window.waitMs('key', 1000 + waitMs - 1)).toBe(1)
  expect(window.waitMs('key', 1000 + waitMs)).toBe(0)
})

test('the sliding window counts each key separately', () => {
  const window = slidingWindow(1, MINUTE)
  window.record('a', 0)
  expect(window.waitMs('a', 0)).toBe(MINUTE)
  expect(window.waitMs('b', 0)).toBe(0)
})

test('a limit of zero allows no call', () => {
  expect(slidingWindow(0, MINUTE).waitMs('key', 0)).toBe(MINUTE)
})

test('no window exceeds the limit, and a call is refused only when the limit is used up', () => {
  let refused = 0
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.integer({ min: 0, max: 30_000 }), { maxLength: 60 }),
      (limit, gaps) => {
        let time = 0
        const times = gaps.map((gap) => (time += gap))
        const passed = passing(limit, times)
        for (const end of times) {
          const inWindow = passed.filter((at) => at > end - MINUTE && at <= end).length
          expect(inWindow).toBeLessThanOrEqual(limit)
          if (passed.includes(end)) continue
          expect(inWindow).toBe(limit)
          refused += 1
        }
      },
    ),
  )
  expect(refused).toBeGreaterThan(100)
})
