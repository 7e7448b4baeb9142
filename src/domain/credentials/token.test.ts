import { expect, test } from 'vitest'
import { newToken, tokenMatches, tokenPrefix } from './token.ts'

test('a token matches its own hash and no other', () => {
  const one = newToken('key')
  const other = newToken('key')
  expect(tokenMatches(one.token, one.hash)).toBe(true)
  expect(tokenMatches(one.token, other.hash)).toBe(false)
  expect(tokenMatches(one.token, null)).toBe(false)
})

test('a key is its prefix and 256 random bits', () => {
  const { token, prefix } = newToken('key')
  expect(token).toMatch(/^berth_live_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/)
  expect(token.startsWith(`${prefix}_`)).toBe(true)
  expect(Buffer.from(token.slice(prefix.length + 1), 'base64url')).toHaveLength(32)
})

test('tokenPrefix returns the prefix of a complete token of the given kind only', () => {
  const { token, prefix } = newToken('session')
  expect(tokenPrefix('session', token)).toBe(prefix)
  expect(tokenPrefix('key', token)).toBeNull()
  for (const bad of ['', 'berth_session_', token.slice(0, -1), `${token}x`, `${token}\n`, ` ${token}`]) {
    expect(tokenPrefix('session', bad)).toBeNull()
  }
})

// S4. A real difference shows in every run; noise of a busy machine does not.
test('a wrong secret takes the same time to refuse for a known and an unknown prefix', () => {
  const { hash } = newToken('key')
  const wrong = newToken('key').token
  const difference = () =>
    relativeDifference(
      () => tokenMatches(wrong, hash),
      () => tokenMatches(wrong, null),
    )
  let least = Infinity
  for (let run = 0; run < 10 && least >= 0.05; run += 1) least = Math.min(least, difference())
  expect(least).toBeLessThan(0.05)
})

/**
 * Returns by what part the run times of two functions that take turns differ, without the slowest tenth of each. Not whether it is
 * certain that they differ: a nanosecond of the compiler's is, in thousands of runs, and says nothing across a network.
 */
function relativeDifference(one: () => unknown, other: () => unknown): number {
  const works = [one, other]
  const times: number[][] = [[], []]
  for (let round = 0; round < 22_000; round++) {
    const index = round % 2
    const startedAt = process.hrtime.bigint()
    works[index]?.()
    times[index]?.push(Number(process.hrtime.bigint() - startedAt))
  }
  const [first = 0, second = 0] = times.map((all) =>
    mean(
      all
        .slice(1000)
        .toSorted((x, y) => x - y)
        .slice(0, 9000),
    ),
  )
  return Math.abs(first - second) / Math.max(first, second)
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
