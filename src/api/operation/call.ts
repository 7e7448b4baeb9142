// The types of a call: its request, its response, and what all calls share.

import type { App } from '../../app.ts'
import type { AppError } from '../../contract/errors.ts'
import type { AuditTrail, CallOrigin } from '../../domain/audit/audit.ts'
import type { Authenticate, Presented } from '../../domain/credentials/authenticate.ts'
import type { Caller } from '../../domain/credentials/caller.ts'
import type { FailedAttempts } from '../../domain/credentials/failed-attempts.ts'
import type { RateLimits } from '../../domain/credentials/rate-limit.ts'
import type { RawInput, Route, Streamed } from '../route.ts'
import type { BodyRoom } from './body-room.ts'
import type { CallsAtOnce } from './calls-at-once.ts'
import type { RefusalPace } from './refusal-pace.ts'
import type { TeamPace } from './team-pace.ts'

/** One request, free of the framework that brought it. */
export type OperationRequest = {
  requestId: string
  route: Route
  params: unknown
  query: unknown
  readBody: () => Promise<Buffer>
  /** How long the body is that `readBody` reads; as long as it may be where the request does not say. */
  bodyBytes: number
  /** The same piece by piece, for a route that takes it so. */
  bodyPieces?: () => AsyncIterable<Buffer>
  presented: Presented
  /** The address of the caller. */
  peer: string
  /** Whether a session may ask for this: a key need not say where it is used. */
  fromOwnPages: boolean
  wantsStream: boolean
  /** It asks for a WebSocket. */
  isUpgrade?: boolean
  lastEventId: string | null
  stripeSignature: string | null
  /** The header's value or values, null without one; routes that do not take it ignore it. */
  idempotencyKey: unknown
  /** Where the input is made of something else than params, query and body: asked once the rate is spent. */
  inputFor?: (caller: Caller) => Promise<RawInput>
  /** What brought it, where that is not this API itself; it says who calls more surely than a header. */
  client?: Pick<CallOrigin, 'via'> & Partial<CallOrigin>
  /** Aborts when the caller goes away, the server stops, or `abort` says so. */
  signal: AbortSignal
  abort: (reason: AppError) => void
  /** Calls back once the answer was sent, or the client has disconnected. */
  onceAnswered: (callback: () => void) => void
  addHeader: (name: string, value: string) => void
}

/** How the answer leaves. `stream` resolves or throws when the stream has ended. */
export type Reply = {
  json: (status: number, body: unknown) => void
  stream: (stream: Streamed) => Promise<void>
}

/** What the checks of all calls are kept in. */
export type Gate = {
  app: App
  /** How many operations are in progress. */
  underWay: () => number
  callsAtOnce: CallsAtOnce
  authenticate: Authenticate
  attempts: FailedAttempts
  rates: RateLimits
  refusals: RefusalPace
  pace: TeamPace
  bodies: BodyRoom
  audit: AuditTrail
}

/** What is known of a call when it comes in. */
export type Incoming = {
  gate: Gate
  request: OperationRequest
  reply: Reply
  /** Who calls, where that has been found out already; else null. */
  knownCaller: Caller | null
}
