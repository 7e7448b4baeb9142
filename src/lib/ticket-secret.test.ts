import { expect, it } from 'vitest'
import { DAY } from './clock.ts'
import { advanceTicketSecret, newTicketSecret, ticketKeysOf } from './ticket-secret.ts'

const today = new Date('2026-11-26T12:00:00Z')
const inDays = (days: number) => new Date(today.getTime() + days * DAY)

it('processes that have the secret of different days have the same keys on a later day', () => {
  const first = newTicketSecret(today)
  const second = advanceTicketSecret(first, inDays(1))
  expect(second.secret).not.toBe(first.secret)
  const [a, b] = [first, second].map((secret) => advanceTicketSecret(secret, inDays(3)))
  expect(a).toEqual(b)
})

it('a clock that is set back keeps the secret', () => {
  const secret = newTicketSecret(today)
  expect(advanceTicketSecret(secret, inDays(-2))).toEqual(secret)
})

it('each listener has keys of its own, of the length that Node takes', () => {
  const secret = newTicketSecret(today)
  const [a, b] = ['tls', 'mysql'].map((listener) => ticketKeysOf(secret, listener))
  expect(a).toHaveLength(48)
  expect(a).not.toEqual(b)
})
