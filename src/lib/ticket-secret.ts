// What the keys of TLS tickets follow from, where several gateways share them. Every day it becomes another secret, from which
// the one before cannot be found.

import { createHmac, randomBytes } from 'node:crypto'
import { DAY } from './clock.ts'

/** `secret`: of this day, in base64. */
export type TicketSecret = { secret: string; day: number }

/** Node takes a name of 16 bytes, and two keys. */
const KEY_BYTES = 48

const dayOf = (at: Date) => Math.floor(at.getTime() / DAY)

export function newTicketSecret(at: Date): TicketSecret {
  return { secret: randomBytes(64).toString('base64'), day: dayOf(at) }
}

/** A clock that is set back keeps the secret, since the one before is gone. */
export function advanceTicketSecret({ secret, day }: TicketSecret, at: Date): TicketSecret {
  let next = secret
  for (let passed = day; passed < dayOf(at); passed += 1)
    next = derive(next, 'the next day').toString('base64')
  return { secret: next, day: Math.max(day, dayOf(at)) }
}

/** Listeners have different keys: a ticket of one is worth nothing at another. */
export function ticketKeysOf({ secret }: TicketSecret, listener: string): Buffer {
  return derive(secret, `tickets of ${listener}`).subarray(0, KEY_BYTES)
}

function derive(secret: string, what: string): Buffer {
  return createHmac('sha512', Buffer.from(secret, 'base64')).update(what).digest()
}
