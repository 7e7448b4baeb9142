import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MINUTE, SECOND } from '../../lib/clock.ts'
import { type RateWindow, spentOf, waitMs, withCall, withoutCall } from './rate-window.ts'

const LIMIT = 20

/** Lets calls pass where the limit allows. Returns when calls passed, and the window at the end. */
function play(times: number[]): { passed: number[]; window: RateWindow } {
  const passed: number[] = []
  let window: RateWindow = []
  for (const time of times) {
    if (waitMs(window, LIMIT, time) > 0) continue
    passed.push(time)
    window = withCall(window, time)
  }
  return { passed, window }
}

/** A call counts until a minute after the end of its quarter of a second. */
const countsAt = (counted: number, time: number) => time < (Math.floor(counted / 250) + 1) * 250 + MINUTE

const burst = { weight: 4, arbitrary: fc.integer({ min: 0, max: 400 }) }
const rest = { weight: 1, arbitrary: fc.integer({ min: 0, max: 20 * SECOND }) }
const times = fc.array(fc.oneof(burst, rest), { maxLength: 400 }).map((pauses) => {
  let time = 1_000_000
  return pauses.map((pause) => (time += pause))
})

test('the rate window never lets more calls pass in a minute than the limit', () => {
  let refused = 0
  fc.assert(
    fc.property(times, (asked) => {
      const { passed } = play(asked)
      refused += asked.length - passed.length
      for (const [index, first] of passed.entries()) {
        const within = passed.slice(index).filter((time) => time < first + MINUTE)
        expect(within.length).toBeLessThanOrEqual(LIMIT)
      }
    }),
  )
  expect(refused).toBeGreaterThan(100)
})

test('a call is refused only when the limit is used up, and passes after the wait it is told', () => {
  let refused = 0
  fc.assert(
    fc.property(times, (asked) => {
      const { passed, window } = play(asked)
      const now = asked.at(-1) ?? 0
      const wait = waitMs(window, LIMIT, now)
      if (wait === 0) return
      refused += 1
      expect(passed.filter((time) => time > now - MINUTE - 250).length).toBeGreaterThanOrEqual(LIMIT)
      expect(wait).toBeLessThanOrEqual(MINUTE + 250)
      expect(waitMs(window, LIMIT, now + wait - 1)).toBeGreaterThan(0)
      expect(waitMs(window, LIMIT, now + wait)).toBe(0)
    }),
  )
  expect(refused).toBeGreaterThan(10)
})

test('a call that is given back counts no more, and all others count as before', () => {
  let given = 0
  let refused = 0
  fc.assert(
    fc.property(times, fc.infiniteStream(fc.nat(3)), (asked, dice) => {
      let passed: number[] = []
      let window: RateWindow = []
      for (const time of asked) {
        // Only calls of the last second, because a refusal comes soon after its call.
        const index = passed.findIndex((counted) => counted > time - SECOND)
        if (index !== -1 && dice.next().value === 0) {
          given += 1
          window = withoutCall(window, passed[index] ?? 0)
          passed = passed.toSpliced(index, 1)
        }
        expect(spentOf(window, time).calls).toBe(passed.filter((counted) => countsAt(counted, time)).length)
        if (waitMs(window, LIMIT, time) > 0) {
          refused += 1
          continue
        }
        passed.push(time)
        window = withCall(window, time)
      }
    }),
  )
  expect([given > 100, refused > 10]).toEqual([true, true])
})

test('giving back a call that counts no more changes nothing', () => {
  const window = withCall([], 100_000)
  expect(withoutCall(window, 10_000)).toBe(window)
  expect(withoutCall([], 10_000)).toEqual([])
})

test('the rate window stays small for any limit', () => {
  let window: RateWindow = []
  for (let now = 0; now < 3 * MINUTE; now += 10) window = withCall(window, now)
  expect(window.length).toBeLessThanOrEqual(242)
  expect(spentOf(window, 3 * MINUTE).calls).toBeGreaterThanOrEqual(6000)
  expect(spentOf(window, 5 * MINUTE)).toEqual({ calls: 0, untilMs: 5 * MINUTE })
})

test('a limit of zero lets no call pass', () => {
  expect(waitMs([], 0, 0)).toBe(MINUTE)
})
