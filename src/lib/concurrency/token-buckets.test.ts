import { expect, it } from 'vitest'
import { createTokenBuckets } from './token-buckets.ts'

it('a key has its burst at first, and what it used comes back with time, up to the burst', () => {
  const buckets = createTokenBuckets(10, 2)
  expect(buckets.waitMs('a', 10, 0)).toBe(0)
  buckets.take('a', 10, 0)
  expect([buckets.waitMs('a', 1, 0), buckets.waitMs('a', 1, 250), buckets.waitMs('a', 1, 500)]).toEqual([
    500, 250, 0,
  ])
  expect(buckets.waitMs('b', 1, 0)).toBe(0)
  expect(buckets.waitMs('a', 11, 1_000_000)).toBe(500)
})

it('what a key takes beyond what it has is owed by its next calls, until it is forgiven', () => {
  const buckets = createTokenBuckets(10, 2)
  buckets.take('a', 14, 0)
  expect(buckets.waitMs('a', 1, 0)).toBe(2500)
  buckets.forgive('a')
  expect(buckets.waitMs('a', 10, 0)).toBe(0)
})
