// What the gateways of one host tell each other (decisions/gateway.md). Each publishes what another one may be asked for by
// a visitor: a request to cancel, a KILL and the check of a certificate's authority come on connections of their own, which
// the kernel gives to any gateway. It is JSON lines (json-lines-rpc.ts) over unix sockets that only their user can open.

import { z } from 'zod'
import { SECOND } from '../../lib/clock.ts'
import { answerLine, failureLine } from '../../lib/ipc/call-lines.ts'
import type { AnswersOf, RequestsOf } from '../../lib/ipc/operation-types.ts'

const port = z.int().min(1).max(65_535)
/** The label of an endpoint. */
const endpointName = z.string().regex(/^[a-z0-9-]{1,63}$/)

const entries = {
  /** The key that cancels what a session of PostgreSQL does, in base64, and where its server is. */
  cancelKey: z.strictObject({
    kind: z.literal('cancelKey'),
    key: z.base64().max(1024),
    address: z.ipv4().nullable(),
    port,
  }),
  /** The id that the gateway gave a session of MySQL, and the server's own one. */
  mysqlSession: z.strictObject({
    kind: z.literal('mysqlSession'),
    given: z.int().min(0),
    own: z.int().min(0),
    unitId: z.string().max(100),
    generation: z.int(),
  }),
  /** What an authority that checks the server name must be shown: chain and key, in PEM. */
  challenge: z.strictObject({
    kind: z.literal('challenge'),
    serverName: z.string().max(253),
    pem: z.string().max(64 * 1024),
  }),
} as const

export type EntryKind = keyof typeof entries
export type Entry<K extends EntryKind = EntryKind> = z.infer<(typeof entries)[K]>

const entry = z.discriminatedUnion('kind', [entries.cancelKey, entries.mysqlSession, entries.challenge])
const id = z.int().min(0)

export const peerOperations = {
  /** Holds until it is withdrawn or the connection ends. */
  publish: { request: z.strictObject({ id, entry }), answer: z.strictObject({}), deadlineMs: 10 * SECOND },
  withdraw: { request: z.strictObject({ id }), answer: z.strictObject({}), deadlineMs: 10 * SECOND },
  /** Orders a certificate for a public name if there is none; answers when that has ended, or is late. */
  order: {
    request: z.strictObject({ name: endpointName }),
    answer: z.strictObject({}),
    // Less than the handshake timeout.
    deadlineMs: 4 * SECOND,
  },
  /** The metrics of the gateway, as Prometheus reads them. */
  metrics: {
    request: z.strictObject({}),
    answer: z.strictObject({ text: z.string() }),
    deadlineMs: 2 * SECOND,
  },
} as const

export type PeerOperation = keyof typeof peerOperations
export type PeerRequest = RequestsOf<typeof peerOperations>
export type PeerAnswer = AnswersOf<typeof peerOperations>

export const MAX_LINE_BYTES = 1024 * 1024
/** What one gateway may publish: as much as it can have connections, with room for challenges. */
export const MAX_ENTRIES = 20_000

export const peerReply = z.union([answerLine, failureLine])
