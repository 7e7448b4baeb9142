// A route describes one operation in one value: everything the server, the OpenAPI document, the audit log and the
// coverage tests need to know about it.

import { z } from 'zod'
import type { App } from '../app.ts'
import { notFound, unauthorized } from '../contract/errors.ts'
import { idempotencyKeySchema } from '../contract/idempotency.ts'
import { parse } from '../contract/parse.ts'
import { maskText } from '../domain/audit/mask.ts'
import type { Action } from '../domain/authorization/authorize.ts'
import type { Caller } from '../domain/credentials/caller.ts'
import type { RateClass } from '../contract/policy.ts'
import { type Fingerprint, fingerprint } from '../domain/idempotency/fingerprint.ts'
import { answerOnce, type Once } from '../domain/idempotency/once.ts'
import type { Body } from './http/body.ts'
import type { ErrorStatus } from './http/errors.ts'
import { type ByteStream, isByteStream } from './http/byte-stream.ts'
import { type WebSocketAnswer, isWebSocketAnswer } from './http/web-socket-answer.ts'
import { type EventStream, isEventStream } from './http/sse.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** What the caller sent, after validation: defaults are filled in, and unknown fields are refused. */
type Input<P, Q, B> = { params: P; query: Q; body: B }

/** What a call carries besides its input. */
export type OpenContext = {
  /** The caller sent `Accept: text/event-stream`. */
  wantsStream: boolean
  /** The id of the last event that the client received before its stream broke; null without one. */
  lastEventId: string | null
  /** The signature of a payment provider's event; null without one. */
  stripeSignature: string | null
  /** Aborts when the client disconnects or the server stops. */
  signal: AbortSignal
  /** The body of a route that takes it piece by piece. */
  bodyPieces?: () => AsyncIterable<Buffer>
  /** Whether the caller asks for a WebSocket, on a route that has one. */
  isUpgrade?: boolean
  /** Resolves once the audit row of a change is written, for a route that is called before (`beforeWritten`). */
  written?: Promise<void>
  /** Where the answer has headers: those of HTTP. */
  addHeader: (name: string, value: string) => void
}

export type CallContext = OpenContext & {
  caller: Caller
  /** Set if the call has an `Idempotency-Key`; the transaction that makes something claims it. */
  once: Once | null
}

/** What a finished call adds to its audit row. */
type Outcome = { target?: string; added?: Record<string, unknown> }

type Definition<P, Q, B, R, C> = {
  method: Method
  /** With parameters in braces, as in the spec. */
  path: string
  /** The noun that the path's id identifies; it groups the routes in the document. */
  noun: string
  summary: string
  description?: string
  /** The action in the audit row. */
  action: string
  /** The audit row of a change is written before the change starts. */
  kind: 'read' | 'change'
  /** Its handler is called while the row is being written, and changes nothing before `written` has resolved. */
  beforeWritten?: true
  /** Default: `requests`. */
  rate?: RateClass
  params: z.ZodType<P>
  query: z.ZodType<Q>
  body: Body<B>
  /** 101: the answer is a WebSocket. Default: 200. */
  status?: 101 | 200 | 201
  response: z.ZodType<R>
  /** The events of its stream by name. Default: none, as the route does not stream. */
  events?: Record<string, z.ZodType>
  /** Where it answers bytes and no JSON: of what type. */
  media?: string
  /** The headers that its answer has besides those of every route, and what each says. */
  headers?: Record<string, string>
  /** The errors besides those of every route. */
  errors: readonly ErrorStatus[]
  /** The team of the call, if the path has one: the caller then acts in it (credentials/acting-team.ts). */
  team?: (input: Input<P, Q, B>) => string
  /** The id in the path, which is also known for a refused call. */
  target: (input: Pick<Input<P, Q, B>, 'params'>) => string | null
  /** The part of the input that the audit row stores: never contents or secrets (spec 2.12). */
  record: (input: Input<P, Q, B>) => Record<string, unknown> | null
  outcome?: (result: R) => Outcome
  handle: (app: App, input: Input<P, Q, B>, context: C) => Promise<R | Streamed>
}

/** An answer that goes on for as long as it takes. */
export type Streamed = EventStream | ByteStream | WebSocketAnswer

/**
 * For a route that makes something and takes an `Idempotency-Key`. Its transaction claims `once` and stores in it
 * what an answer needs. `resume` builds the answer of a repeated call from that. `true`: the stored value is the
 * answer itself, because nothing is left to do after the transaction. `personal`: the same, but only the credential
 * that made the first call gets the stored answer, because it contains a secret.
 */
type Idempotent<P, Q, B, R> =
  | true
  | 'personal'
  | { resume: (app: App, input: Input<P, Q, B>, context: CallContext, kept: unknown) => Promise<R> }

export type Answered =
  | { kind: 'json'; body: unknown; outcome: Outcome }
  | { kind: 'stream'; stream: Streamed }

/** A call whose input is valid. */
export type Prepared = {
  team: string | null
  target: string | null
  record: Record<string, unknown> | null
  run: (app: App, context: OpenContext, caller: Caller | null) => Promise<Answered>
}

export type RawInput = {
  params: unknown
  query: unknown
  body: Buffer
  /** The header's value, a list if it was sent more than once, null without one. */
  idempotencyKey: unknown
}

export type Route = Pick<
  Definition<unknown, unknown, unknown, unknown, never>,
  | 'method'
  | 'path'
  | 'noun'
  | 'summary'
  | 'description'
  | 'action'
  | 'kind'
  | 'beforeWritten'
  | 'media'
  | 'headers'
  | 'errors'
> &
  Required<Pick<Definition<unknown, unknown, unknown, unknown, never>, 'rate' | 'status' | 'events'>> & {
    auth: 'caller' | 'none'
    /** What the caller must be allowed within the team, whatever the call is about; null where all its members may. */
    allow: Action | null
    takesIdempotencyKey: boolean
    params: z.ZodType
    query: z.ZodType
    response: z.ZodType
    body: Omit<Body<unknown>, 'parse'>
    /** The target of a call, also if the rest of its input is invalid. */
    targetOf: (params: unknown) => string | null
    /** Throws `validation`, or `not_found` for a path parameter that no id can have. */
    prepare: (raw: RawInput) => Prepared
  }

/** Binds a route's schemas to its functions, and erases their types so that routes fit in one list. */
export function defineRoute<P, Q, B, R>(
  definition: Definition<P, Q, B, R, CallContext> & {
    idempotent?: Idempotent<P, Q, B, R>
    /** The permission in the team that every call of this route needs. */
    allow?: Action
  },
): Route {
  const { idempotent, allow = null, ...plain } = definition
  const kind = { auth: 'caller', allow, takesIdempotencyKey: idempotent !== undefined } as const
  return erase(plain, kind, async (app, input, context, caller, keyed) => {
    if (caller === null) throw unauthorized()
    const handle = (once: Once | null) => plain.handle(app, input, { ...context, caller, once })
    if (keyed === null || idempotent === undefined) return await handle(null)

    const { key, request } = keyed
    const by = idempotent === 'personal' ? ` ${caller.kind} ${caller.userId ?? caller.credentialId}` : ''
    const name = { teamId: caller.teamId, route: `${plain.method} ${plain.path}${by}`, key }
    const answer = await answerOnce<R>(
      app,
      { name, request },
      {
        make: async (once) => whole(await handle(once)),
        resume: async (kept) =>
          typeof idempotent === 'object'
            ? await idempotent.resume(app, input, { ...context, caller, once: null }, kept)
            : plain.response.parse(kept),
      },
    )
    if (answer.replayed) context.addHeader('idempotent-replayed', 'true')
    if (answer.kind === 'refused') throw answer.error
    return answer.value
  })
}

/** A route that needs no credentials. */
export function defineOpenRoute<P, Q, B, R>(definition: Definition<P, Q, B, R, OpenContext>): Route {
  return erase(definition, { auth: 'none', allow: null, takesIdempotencyKey: false }, (app, input, context) =>
    definition.handle(app, input, context),
  )
}

type Handle<P, Q, B, R> = (
  app: App,
  input: Input<P, Q, B>,
  context: OpenContext,
  caller: Caller | null,
  keyed: { key: string; request: Fingerprint } | null,
) => Promise<R | Streamed>

function erase<P, Q, B, R, C>(
  definition: Definition<P, Q, B, R, C>,
  kind: Pick<Route, 'auth' | 'allow' | 'takesIdempotencyKey'>,
  handle: Handle<P, Q, B, R>,
): Route {
  const { outcome, record, target, team, handle: _typed, ...described } = definition
  return {
    rate: 'requests',
    status: 200,
    events: {},
    ...described,
    ...kind,
    targetOf: (params) => {
      const named = definition.params.safeParse(params)
      return named.success ? target({ params: named.data }) : null
    },
    prepare: (raw) => {
      const params = definition.params.safeParse(raw.params)
      if (!params.success) throw notFound(definition.noun, idOf(raw.params))
      const query = parse(definition.query, raw.query)
      const input = { params: params.data, query, body: definition.body.parse(raw.body) }
      const key = kind.takesIdempotencyKey ? readKey(raw) : null
      const keyed = key === null ? null : { key, request: fingerprint(input, raw) }
      return {
        team: team?.(input) ?? null,
        target: target(input),
        record: key === null ? record(input) : { ...record(input), idempotencyKey: maskText(key) },
        run: async (app, context, caller) => {
          const result = await handle(app, input, context, caller, keyed)
          if (isStreamed(result)) return { kind: 'stream', stream: result }
          return { kind: 'json', body: result, outcome: outcome?.(result) ?? {} }
        },
      }
    },
  }
}

function isStreamed(value: unknown): value is Streamed {
  return isEventStream(value) || isByteStream(value) || isWebSocketAnswer(value)
}

function readKey({ idempotencyKey }: RawInput): string | null {
  return parse(idempotencyKeySchema.nullable(), idempotencyKey, 'Idempotency-Key')
}

/** Only a complete answer can be returned again. */
function whole<R>(result: R | Streamed): R {
  if (isStreamed(result)) throw new TypeError('a route that takes Idempotency-Key cannot stream')
  return result
}

function idOf(params: unknown): string {
  const named = z.object({ id: z.string().optional(), name: z.string().optional() }).safeParse(params)
  // A token in a path is a secret: it must not appear in an answer.
  return named.data?.id ?? named.data?.name ?? ''
}

export const noParams = z.strictObject({})
export const noQuery = z.strictObject({})
/** No id has other characters; a path that does gets 404 without a query. */
export const pathId = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/)
export const idParams = z.strictObject({ id: pathId })
