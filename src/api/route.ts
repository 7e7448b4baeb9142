// What a route is: everything the server, the OpenAPI document, the audit trail and the coverage tests
// need to know about one operation, in one value.

import { z } from 'zod'
import type { App } from '../app.ts'
import { notFound, unauthorized } from '../contract/errors.ts'
import { parse } from '../contract/parse.ts'
import type { Caller } from '../domain/credentials/caller.ts'
import type { RateClass } from '../domain/credentials/rate-limit.ts'
import type { Body } from './body.ts'
import type { ErrorStatus } from './errors.ts'
import { type EventStream, isEventStream } from './sse.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** What the caller sent, after its schemas: defaults filled in, unknown fields refused. */
type Input<P, Q, B> = { params: P; query: Q; body: B }

/** What a call brings beside its input. */
export type OpenContext = {
  /** `Accept: text/event-stream`. */
  wantsStream: boolean
  /** Where a follower that was cut off goes on. */
  lastEventId: string | null
  /** Aborts when the caller goes away or the server stops. */
  signal: AbortSignal
}

export type CallContext = OpenContext & { caller: Caller }

/** What a finished call adds to its audit row. */
type Outcome = { target?: string; costCents?: number }

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
  /** The id a call is about. */
  target: (input: Input<P, Q, B>) => string | null
  /** What of the input the audit row keeps: never contents or secrets (spec 2.12). */
  record: (input: Input<P, Q, B>) => Record<string, unknown> | null
  outcome?: (result: R) => Outcome
  handle: (app: App, input: Input<P, Q, B>, context: C) => Promise<R | EventStream>
}

type Answered = { kind: 'json'; body: unknown; outcome: Outcome } | { kind: 'stream'; stream: EventStream }

/** A call whose input has been accepted. */
export type Prepared = {
  target: string | null
  record: Record<string, unknown> | null
  run: (app: App, context: OpenContext, caller: Caller | null) => Promise<Answered>
}

export type RawInput = { params: unknown; query: unknown; body: Buffer }

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
  params: z.ZodType
  query: z.ZodType
  response: z.ZodType
  body: Omit<Body<unknown>, 'parse'>
  /** Throws `validation`, or `not_found` for a path that no id can have. */
  prepare: (raw: RawInput) => Prepared
}

/** Ties a route's schemas to its functions where it is written, and forgets their types for the list. */
export function defineRoute<P, Q, B, R>(definition: Definition<P, Q, B, R, CallContext>): Route {
  return erase(definition, 'caller', async (app, input, context, caller) => {
    if (caller === null) throw unauthorized()
    return await definition.handle(app, input, { ...context, caller })
  })
}

/** A route that anyone may call, without credentials. */
export function defineOpenRoute<P, Q, B, R>(definition: Definition<P, Q, B, R, OpenContext>): Route {
  return erase(definition, 'none', definition.handle)
}

type Handle<P, Q, B, R> = (
  app: App,
  input: Input<P, Q, B>,
  context: OpenContext,
  caller: Caller | null,
) => Promise<R | EventStream>

function erase<P, Q, B, R, C>(
  definition: Definition<P, Q, B, R, C>,
  auth: Route['auth'],
  handle: Handle<P, Q, B, R>,
): Route {
  const { outcome, record, target, handle: _typed, ...described } = definition
  return {
    ...described,
    auth,
    prepare: (raw) => {
      const params = definition.params.safeParse(raw.params)
      if (!params.success) throw notFound(definition.noun, idOf(raw.params))
      const query = parse(definition.query, raw.query)
      const input = { params: params.data, query, body: definition.body.parse(raw.body) }
      return {
        target: target(input),
        record: record(input),
        run: async (app, context, caller) => {
          const result = await handle(app, input, context, caller)
          if (isEventStream(result)) return { kind: 'stream', stream: result }
          return { kind: 'json', body: result, outcome: outcome?.(result) ?? {} }
        },
      }
    },
  }
}

function idOf(params: unknown): string {
  const id = z.object({ id: z.string() }).safeParse(params)
  return id.success ? id.data.id : ''
}

export const noParams = z.strictObject({})
export const noQuery = z.strictObject({})
/** No id has other characters; what has is unknown, and never reaches a query. */
export const idParams = z.strictObject({ id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/) })
