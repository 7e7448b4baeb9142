// The protocol between the engine and the two processes that decide by name: the egress process, and the gateway
// with the resolver for restricted machines. JSON lines (lib/ipc/json-lines-rpc.ts), over one unix socket for each.
// Both processes parse untrusted bytes, so their only request is to let a machine reach the addresses of a name that
// its rules allow, and only the resolver may send it. Only the egress process receives the values of secrets.
// What both report of connections and look-ups (seen.ts) is only stored for people to read.

import { isIPv4 } from 'node:net'
import { z } from 'zod'
import { SECOND } from '../clock.ts'
import { answerLine, callLine, failureLine } from '../ipc/call-lines.ts'
import { egressModes, siblingScopes } from './rules.ts'
import { SEEN_AT_ONCE, seenLine } from './seen.ts'

export const LINK_MAX_BYTES = 1024 * 1024
/** A whole listing of rules may wait for a reader. */
export const LINK_MAX_UNREAD_BYTES = 256 * 1024 * 1024
export const LINK_MAX_CALLS = 1024

const version = z.int().min(0)
const address = z.string().refine((text) => isIPv4(text))
const egress = z.object({
  mode: z.enum(egressModes),
  allow: z.array(z.string()),
  deny: z.array(z.string()).optional(),
  siblings: z.enum(siblingScopes),
})

const team = z.int().min(0)
/** The resolver gets only the hosts. */
const secret = z.object({
  name: z.string(),
  placeholder: z.string(),
  value: z.string(),
  hosts: z.array(z.string()),
  methods: z.array(z.string()).exactOptional(),
  paths: z.array(z.string()).exactOptional(),
})

export const linkEvents = z.discriminatedUnion('event', [
  /** The rules of the machine with an address. Null: it is not restricted any more. */
  z.object({
    event: z.literal('rules'),
    version,
    address,
    machine: z.string(),
    egress: egress.nullable(),
    team: team.optional(),
    secrets: z.array(secret).default([]),
  }),
  /** The machine's run has ended: its open connections must be closed. */
  z.object({ event: z.literal('ended'), version, address }),
  /** All that there is has been said. */
  z.object({ event: z.literal('whole'), version }),
])
export type LinkEvent = z.infer<typeof linkEvents>

export const linkMessage = z.union([linkEvents, answerLine, failureLine])

export const linkOperations = {
  /** All events up to this version are in force. */
  applied: z.strictObject({ version }),
  /** The certificate of a team's authority, in PEM. From the egress process alone. */
  authority: z.strictObject({ team, certificate: z.string().max(8192) }),
  /** The name has these addresses. Answers whether the machine can reach them now. */
  pin: z.strictObject({ machine: address, name: z.string().max(253), addresses: z.array(address).max(64) }),
  /** What machines reached and were refused since the last call. */
  seen: z.strictObject({
    lines: z.array(z.strictObject({ ...seenLine.shape, machine: address })).max(SEEN_AT_ONCE),
  }),
}
export const linkCall = callLine.extend({ operation: z.enum(['applied', 'pin', 'authority', 'seen']) })

export const PIN_DEADLINE_MS = 2 * SECOND
export const SEEN_DEADLINE_MS = 10 * SECOND
