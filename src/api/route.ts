// What a route is: everything the server, the OpenAPI document, the audit trail and the coverage tests
// need to know about one operation, in one value.

import { z } from 'zod'
import type { App } from '../app.ts'
import { notFound, unauthorized } from '../contract/errors.ts'
import { idempotencyKeySchema } from '../contract/idempotency.ts'
import { parse } from '../contract/parse.ts'
import { maskText } from '../domain/audit/mask.ts'
import type { Action } from '../domain/authorization/authorize.ts'
import type { Caller } from '../domain/credentials/caller.ts'
import type { RateClass } from '../domain/credentials/rate-limit.ts'
import { type Fingerprint, fingerprint } from '../domain/idempotency/fingerprint.ts'
import { answerOnce, type Once } from '../domain/idempotency/once.ts'
import type { Body } from './http/body.ts'
import type { ErrorStatus } from './http/errors.ts'
import { type EventStream, isEventStream } from './http/sse.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** What the caller sent, after its schemas: defaults filled in, unknown fields refused. */
type Input<P, Q, B> = { params: P; query: Q; body: B }

/** What a call brings beside its input. */
export type OpenContext = {
  /** `Accept: text/event-stream`. */
  wantsStream: boolean
  /** Where a follower that was cut off goes on. */
  lastEventId: string | null
  /** What an event of the payment provider is signed with; null without it. */
  stripeSignature: string | null
  /** Aborts when the caller goes away or the server stops. */
  signal: AbortSignal
  /** Says in the answer's head that an earlier call made what it tells of. */
  markReplayed: () => void
}

export type CallContext = OpenContext & {
  caller: Caller
  /** For the transaction that makes something, where the call came with an `Idempotency-Key`. */
  once: Once | null
}

/** What a finished call adds to its audit row. */
type Outcome = { target?: string }

type Definition<P, Q, B, R, C> = {
  method: Method
  /** With parameters in braces, as the spec writes it. */
  path: string
  /** What the path's id names; groups the routes in the document. */
  noun: string
  summary: string
  description?: string
  /** The audit row's action. */
  action: string
  /** A change has its audit row before it starts. */
  kind: 'read' | 'change'
  rate: RateClass
  params: z.ZodType<P>
  query: z.ZodType<Q>
  body: Body<B>
  status: 200 | 201
  response: z.ZodType<R>
  /** The events of its stream by name; empty where it cannot stream. */
  events: Record<string, z.ZodType>
  /** Statuses beyond those every route may answer. */
  errors: readonly ErrorStatus[]
  /** The team a call is about, where its path names one: the caller acts there (credentials/acting-team.ts). */
  team?: (input: Input<P, Q, B>) => string
  /** The id a call is about, by its path: it is known of a refused call, too. */
  target: (input: Pick<Input<P, Q, B>, 'params'>) => string | null
  /** What of the input the audit row keeps: never contents or secrets (spec 2.12). */
  record: (input: Input<P, Q, B>) => Record<string, unknown> | null
  outcome?: (result: R) => Outcome
  handle: (app: App, input: Input<P, Q, B>, context: C) => Promise<R | EventStream>
}

/**
 * The route makes something and takes `Idempotency-Key`: its transaction claims `once`, and keeps in it what
 * an answer needs. `resume` answers for a call that could not do so itself. `true`: what is kept is the
 * answer, since nothing is left to do after the transaction. `personal`: the same, for whoever asked first alone, since
 * the answer holds what nobody else may see.
 */
type Idempotent<P, Q, B, R> =
  | true
  | 'personal'
  | { resume: (app: App, input: Input<P, Q, B>, context: CallContext, kept: unknown) => Promise<R> }

export type Answered =
  | { kind: 'json'; body: unknown; outcome: Outcome }
  | { kind: 'stream'; stream: EventStream }

/** A call whose input has been accepted. */
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
  /** The header's value, all of them where it was sent more than once, null without one. */
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
  | 'rate'
  | 'status'
  | 'events'
  | 'errors'
> & {
  auth: 'caller' | 'none'
  /** What the caller must be allowed within the team, whatever the call is about; null where all its members may. */
  allow: Action | null
  takesIdempotencyKey: boolean
  params: z.ZodType
  query: z.ZodType
  response: z.ZodType
  body: Omit<Body<unknown>, 'parse'>
  /** What a call is about, whatever else is wrong with it. */
  targetOf: (params: unknown) => string | null
  /** Throws `validation`, or `not_found` for a path that no id can have. */
  prepare: (raw: RawInput) => Prepared
}

/** Ties a route's schemas to its functions where it is written, and forgets their types for the list. */
export function defineRoute<P, Q, B, R>(
  definition: Definition<P, Q, B, R, CallContext> & {
    idempotent?: Idempotent<P, Q, B, R>
    /** What the caller must be allowed within the team, whatever the call is about. */
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
    if (answer.replayed) context.markReplayed()
    if (answer.kind === 'refused') throw answer.error
    return answer.value
  })
}

/** A route that anyone may call, without credentials. */
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
) => Promise<R | EventStream>

function erase<P, Q, B, R, C>(
  definition: Definition<P, Q, B, R, C>,
  kind: Pick<Route, 'auth' | 'allow' | 'takesIdempotencyKey'>,
  handle: Handle<P, Q, B, R>,
): Route {
  const { outcome, record, target, team, handle: _typed, ...described } = definition
  return {
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
          if (isEventStream(result)) return { kind: 'stream', stream: result }
          return { kind: 'json', body: result, outcome: outcome?.(result) ?? {} }
        },
      }
    },
  }
}

function readKey({ idempotencyKey }: RawInput): string | null {
  return parse(idempotencyKeySchema.nullable(), idempotencyKey, 'Idempotency-Key')
}

/** Only what is whole can be answered again. */
function whole<R>(result: R | EventStream): R {
  if (isEventStream(result)) throw new TypeError('what takes Idempotency-Key answers in one piece')
  return result
}

function idOf(params: unknown): string {
  const named = z.object({ id: z.string().optional(), name: z.string().optional() }).safeParse(params)
  // A token in a path is nobody's to read again, in an answer neither.
  return named.data?.id ?? named.data?.name ?? ''
}

export const noParams = z.strictObject({})
export const noQuery = z.strictObject({})
/** No id has other characters; what has is unknown, and never reaches a query. */
export const pathId = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/)
export const idParams = z.strictObject({ id: pathId })
