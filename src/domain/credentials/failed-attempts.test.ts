import { expect, test } from 'vitest'
import { AppError } from '../../contract/errors.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { createFailedAttempts, FAILURES_PER_MINUTE } from './failed-attempts.ts'

const refused = (work: () => void): AppError | null => {
  try {
    work()
    return null
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
}

test.each([
  ['192.0.2.1', '192.0.2.2'],
  ['::ffff:192.0.2.1', '::ffff:192.0.2.2'],
  ['2001:db8:1:2::1', '2001:db8:1:3::1'],
  ['2001:db8::1', '2001:db8:0:1::1'],
  ['::1', '2001:db8::1'],
])('failed attempts from %s do not block %s', (address, other) => {
  const attempts = createFailedAttempts({ clock: systemClock, log: silentLog })
  for (let tries = 0; tries < FAILURES_PER_MINUTE; tries++) {
    expect(refused(() => attempts.check(address, 'guess'))).toBeNull()
    attempts.failed(address)
  }
  expect(refused(() => attempts.check(address, 'guess'))?.status).toBe(429)
  expect(refused(() => attempts.check(other, 'guess'))).toBeNull()
})

test('failed attempts from one IPv6 /64 network count as those of one peer', () => {
  const attempts = createFailedAttempts({ clock: systemClock, log: silentLog })
  for (let tries = 0; tries < FAILURES_PER_MINUTE; tries++)
    attempts.failed(`2001:db8:1:2::${tries.toString(16)}`)
  expect(refused(() => attempts.check('2001:db8:1:2:aaaa::1', 'guess'))?.status).toBe(429)
})
