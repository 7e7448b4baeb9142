// The lines of the egress log: each sums up what a restricted machine reached or was refused in one minute. The resolver
// and the egress process send lines to the engine, and the engine sends them to the server, which stores them. Names come
// from strangers: a line contains only names that a public host could have, in the form in which they are compared.

import { isIPv4 } from 'node:net'
import { z } from 'zod'
import { MINUTE } from '../clock.ts'

/** `http` and `tls`: connections to ports 80 and 443. `dns`: look-ups, of names that are refused or have another port. */
export const seenProtocols = ['http', 'tls', 'dns'] as const

export const seenDecisions = ['allowed', 'refused'] as const

/** `secret_request`: a secret was sent in a request that it is not for. `not_enforced`: the egress process is not there. `others`: more than a minute has lines for, in one. */
export const seenReasons = [
  'listed',
  'unreachable',
  'unverified',
  'not_listed',
  'no_name',
  'private_address',
  'unknown_name',
  'denied',
  'siblings',
  'secret_request',
  'not_enforced',
  'others',
] as const

/** Printable ASCII: what else a name or a rule holds is in none of them. */
const printable = (most: number) =>
  z
    .string()
    .max(most)
    .regex(/^[ -~]+$/)
const number = z.int().min(0)

export const seenLine = z.strictObject({
  /** When it begins, in milliseconds. */
  minute: number,
  host: z
    .string()
    .regex(/^[a-z0-9_.-]{1,253}$/)
    .nullable(),
  /** Where the newest connection of the line led. */
  address: z
    .string()
    .refine((text) => isIPv4(text))
    .nullable(),
  port: z.int().min(1).max(65_535).nullable(),
  protocol: z.enum(seenProtocols),
  decision: z.enum(seenDecisions),
  reason: z.enum(seenReasons),
  /** The entry that allows it. */
  rule: printable(300).nullable(),
  /** The name of the secret that was put in. */
  secret: printable(200).nullable(),
  /** From the host, and to it. Counted when a connection ends, in the minute in which it began. */
  bytesIn: number,
  bytesOut: number,
  count: number,
})
export type SeenLine = z.infer<typeof seenLine>

/** `machine`: its address or its id. */
export type MachineSeen = SeenLine & { machine: string }

/** The most lines in one message. */
export const SEEN_AT_ONCE = 500

export function minuteOf(time: Date): number {
  return Math.floor(time.getTime() / MINUTE) * MINUTE
}
