import { expect, it } from 'vitest'
import { shortestWindow, sleepWindowMs } from './duration.ts'

it.each([
  ['1m', 60_000],
  ['90m', 5_400_000],
  ['2h', 7_200_000],
  ['99999d', 99_999 * 86_400_000],
  ['never', Infinity],
])('sleepWindowMs converts %s to %d ms', (window, ms) => {
  expect(sleepWindowMs(window)).toBe(ms)
})

it.each(['', '0m', '01m', '100000m', '5', 'm', '5s', '-1m', '1.5h', 'Never'])(
  'sleepWindowMs throws for "%s"',
  (text) => {
    expect(() => sleepWindowMs(text)).toThrow('not a sleep window')
  },
)

it('shortestWindow returns the shortest, and never is longer than any other', () => {
  expect(shortestWindow('never', '2h', '90m')).toBe('90m')
  expect(shortestWindow('never', 'never')).toBe('never')
})
