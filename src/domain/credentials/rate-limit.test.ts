import { expect, test } from 'vitest'
import { AppError } from '../../contract/errors.ts'
import { systemClock } from '../../lib/clock.ts'
import { createRateLimits, FAILURES_PER_MINUTE } from './rate-limit.ts'

const rates = { requests: 3, creations: 1, execs: 1 }

const refused = (work: () => void): AppError | null => {
  try {
    work()
    return null
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
}

test('a refused call counts for nothing', () => {
  const limits = createRateLimits(rates, systemClock)
  limits.spend('a', 'creations')
  for (let tries = 0; tries < 5; tries++)
    expect(refused(() => limits.spend('a', 'creations'))?.status).toBe(429)
  limits.spend('a', 'requests')
  limits.spend('a', 'execs')
  expect(refused(() => limits.spend('a', 'requests'))).toMatchObject({
    code: 'quota_exceeded',
    retryAfterS: 60,
  })
})

test.each([
  ['192.0.2.1', '192.0.2.2'],
  ['::ffff:192.0.2.1', '::ffff:192.0.2.2'],
  ['2001:db8:1:2::1', '2001:db8:1:3::1'],
  ['2001:db8::1', '2001:db8:0:1::1'],
  ['::1', '2001:db8::1'],
])('failures from %s hold up nobody at %s', (address, other) => {
  const limits = createRateLimits(rates, systemClock)
  for (let tries = 0; tries < FAILURES_PER_MINUTE; tries++) {
    expect(refused(() => limits.checkPeer(address, 'guess'))).toBeNull()
    limits.peerFailed(address)
  }
  expect(refused(() => limits.checkPeer(address, 'guess'))?.status).toBe(429)
  expect(refused(() => limits.checkPeer(other, 'guess'))).toBeNull()
})

test('the addresses of one IPv6 network are one peer', () => {
  const limits = createRateLimits(rates, systemClock)
  for (let tries = 0; tries < FAILURES_PER_MINUTE; tries++)
    limits.peerFailed(`2001:db8:1:2::${tries.toString(16)}`)
  expect(refused(() => limits.checkPeer('2001:db8:1:2:aaaa::1', 'guess'))?.status).toBe(429)
})
