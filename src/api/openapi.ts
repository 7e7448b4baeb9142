// Writes the OpenAPI 3.1 document from the list of routes and src/api/operation-docs.

import {
  OpenAPIRegistry,
  OpenApiGeneratorV31,
  type RouteConfig,
  type ZodContentObject,
} from '@asteasolutions/zod-to-openapi'
import { z } from 'zod'
import { limits } from '../contract/limits.ts'
import { commonErrors, errorSchema, errorStatuses, type ErrorStatus } from './http/errors.ts'
import { EVENT_STREAM } from './http/sse.ts'
import type { OperationDoc } from './operation-docs/doc.ts'
import { operationDocs } from './operation-docs/operation-docs.ts'
import type { Route } from './route.ts'
import { requestOf } from './openapi-requests.ts'

export function openApiDocument(routes: readonly Route[]): Record<string, unknown> {
  const registry = new OpenAPIRegistry()
  registry.registerComponent('securitySchemes', 'apiKey', {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key, `berth_live_…`, or the access token of a connected program, `berth_oat_…`.',
  })
  registry.registerComponent('securitySchemes', 'session', {
    type: 'apiKey',
    in: 'cookie',
    name: 'berth_session',
    description: 'The session of a person who signed in; over HTTPS the name begins with `__Host-`.',
  })
  for (const [status, response] of sharedErrors)
    registry.registerComponent('responses', `Error${status}`, response)
  registry.registerComponent('headers', 'RequestId', {
    description: 'The id of this request: the one the caller sent, or a new one.',
    required: true,
    schema: { type: 'string' },
  })
  registry.registerComponent('headers', 'RetryAfter', {
    description: 'Seconds.',
    required: true,
    schema: { type: 'string' },
  })
  registry.registerComponent('headers', 'IdempotentReplayed', {
    description:
      '`true`: this is the answer of an earlier call with the same `Idempotency-Key`, and nothing new was made.',
    schema: { type: 'string', enum: ['true'] },
  })
  registry.registerComponent('schemas', 'Error', errorComponent())
  for (const route of routes) registry.registerPath(operation(route))

  const generator = new OpenApiGeneratorV31(registry.definitions, { sortComponents: 'alphabetically' })
  const document = generator.generateDocument({
    openapi: '3.1.0',
    info: {
      title: 'Berth',
      version: '1.0.0',
      description:
        'Container units for AI agents. Send an API key as `Authorization: Bearer <API_KEY>`. Every response carries `x-request-id`, and ' +
        "an error repeats it: the caller's own if that is 1 to 128 printable ASCII characters without spaces, else a new one. " +
        'Unknown fields are refused with 400. HEAD answers like GET, without the body.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [...new Set(routes.map(({ noun }) => noun))].map((name) => ({
      name,
      description: nouns[name] ?? name,
    })),
  })
  return { ...document }
}

/** What the routes of each noun are about; a test requires an entry for each noun. */
export const nouns: Record<string, string> = {
  unit: 'Containers: make them, run commands in them, read and write their files, publish them, put them to sleep.',
  context:
    'Where code runs in a unit and keeps its variables: they are made, restarted, interrupted and deleted.',
  process:
    'Commands that run on after the call that started them has ended: their state, output, signals and end.',
  stack: 'Groups of units that share a private network and can be put to sleep, copied and deleted together.',
  recipe: 'Templates that create one or more units, such as a database, and return its connection strings.',
  secret: 'Secrets of a team that units use and do not hold.',
  agent: 'The credentials of a team: API keys and connected agents.',
  key: 'API keys and their policies.',
  'hosted environment': 'Environments of vendors whose hosted agents work in units of the team.',
  'audit event': 'Every authenticated call of the team.',
  event: 'What changes in the team, as it changes.',
  team: 'Teams own units, keys and credits.',
  member: 'The people of a team.',
  invitation: 'Invitations to a team.',
  payment: 'Buying credits.',
  account: 'The person who is signed in, prices, quotas and usage.',
  'support message': 'Messages to the operator of this service.',
  service: 'This document.',
}

/** Returns every error status of a route. */
export function errorStatusesOf(route: Route): ErrorStatus[] {
  const ofKey: ErrorStatus[] = route.takesIdempotencyKey ? [409] : []
  return [...new Set([...commonErrorsOf(route), ...route.errors, ...ofKey])].sort((a, b) => a - b)
}

function operation(route: Route): RouteConfig {
  const doc = docOf(route)
  return {
    method: lowerCase[route.method],
    path: route.path,
    tags: [route.noun],
    operationId: operationId(route),
    summary: route.summary,
    description: [route.description, cost(doc), repetition(route), rateLimit(route)]
      .filter(Boolean)
      .join(' '),
    security: route.auth === 'caller' ? [{ apiKey: [] }, { session: [] }] : [],
    request: requestOf(route, doc),
    responses: {
      [route.status]: {
        description: doc.answer,
        headers: headersOf(route),
        ...(route.status === 101 ? {} : { content: answerOf(route, doc) }),
      },
      ...Object.fromEntries(
        errorStatusesOf(route).map((status) => [status, errorResponse(route, doc, status)]),
      ),
    },
    'x-audit-action': route.action,
    'x-rate-limit': route.auth === 'caller' ? rateLimitOf(route) : undefined,
  }
}

const lowerCase = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'delete' } as const

/** Fewer things can go wrong in a route without credentials or input. */
function commonErrorsOf({ auth }: Route): readonly ErrorStatus[] {
  return auth === 'caller' ? commonErrors : [400, 429, 500, 503]
}

/** The shared responses refer to it by name, so no route includes it. */
function errorComponent() {
  const { $defs } = z.toJSONSchema(errorSchema)
  return $defs?.['Error'] as Parameters<OpenAPIRegistry['registerComponent']>[2]
}

/** Throws if src/api/operation-docs has no entry for the route. */
function docOf(route: Route): OperationDoc {
  const doc = operationDocs[operationId(route)]
  if (!doc) throw new Error(`src/api/operation-docs says nothing of ${operationId(route)}`)
  return doc
}

function cost(doc: OperationDoc): string {
  return `Cost: ${doc.cost ?? 'Nothing.'}`
}

/** `unit.file.write` by PUT and by POST are one action, so the method is part of the id. */
export function operationId({ action, method, body }: Route): string {
  const words = [...action.split('.'), ...(method === 'PUT' && body.kind === 'bytes' ? ['bytes'] : [])]
  return words
    .map((word, index) => (index === 0 ? word : `${word[0]?.toUpperCase()}${word.slice(1)}`))
    .join('')
}

function rateLimitOf({ rate }: Route): Record<string, number> {
  const perMinute = {
    requests: limits.requestsPerMinute,
    creations: limits.creationsPerMinute,
    execs: limits.execsPerMinute,
  }
  return {
    requestsPerMinute: perMinute.requests,
    ...(rate === 'requests' ? {} : { [`${rate}PerMinute`]: perMinute[rate] }),
  }
}

function rateLimit(route: Route): string | undefined {
  if (route.auth === 'none') return undefined
  const own = Object.entries(rateLimitOf(route)).map(
    ([name, limit]) => `${limit} ${name.replace('PerMinute', '')}`,
  )
  return `At most ${own.join(' and ')} a minute per credential.`
}

function repetition(route: Route): string | undefined {
  if (!route.takesIdempotencyKey) return undefined
  return (
    'With `Idempotency-Key` the call is safe to repeat, with any credential of the team. For 24 hours the same ' +
    'request with the same key returns the first answer and makes nothing new, even if that answer never arrived; ' +
    'a repetition while the first call is in progress waits for it. Another request with the same ' +
    'key gets 409. A call that is refused before anything was made leaves its key free.'
  )
}

function answerOf({ response, events, media }: Route, doc: OperationDoc): ZodContentObject {
  const names = Object.keys(events)
  if (media !== undefined && names.length === 0)
    return { [media]: { schema: response, example: doc.response } }
  const json = { 'application/json': { schema: response, example: doc.response } }
  if (names.length === 0) return json
  const schema = z.string().meta({ description: `Server-Sent Events: ${names.join(', ')}.` })
  return { ...(media === undefined ? json : {}), [EVENT_STREAM]: { schema, example: doc.events } }
}

const requestId = { 'x-request-id': { $ref: '#/components/headers/RequestId' } }
const retryAfter = { 'retry-after': { $ref: '#/components/headers/RetryAfter' } }
const replayed = { 'idempotent-replayed': { $ref: '#/components/headers/IdempotentReplayed' } }

function headersOf({ takesIdempotencyKey, headers = {} }: Route) {
  const own = Object.entries(headers).map(([name, description]) => [
    name,
    { description, required: true, schema: { type: 'string' as const } },
  ])
  return { ...requestId, ...(takesIdempotencyKey ? replayed : {}), ...Object.fromEntries(own) }
}

type SharedResponse = Parameters<OpenAPIRegistry['registerComponent']>[2] & { description: string }

/** One shared response for each status. A route refers to it, and adds a description where it has more to say. */
const sharedErrors = Object.entries(errorStatuses).map(([status, description]): [string, SharedResponse] => [
  status,
  {
    description,
    headers: {
      ...requestId,
      ...(status === '429' || status === '503' ? retryAfter : {}),
      // Other refusals happen before anything is made, and are not stored.
      ...(status === '502' ? replayed : {}),
    },
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  },
])

function errorResponse(
  route: Route,
  doc: OperationDoc,
  status: ErrorStatus,
): RouteConfig['responses'][string] {
  const own = doc.errors?.[status]
  const ofKey =
    status === 409 && route.takesIdempotencyKey
      ? 'Another request was sent with the same `Idempotency-Key`: choose a new one.'
      : undefined
  const $ref = `#/components/responses/Error${status}`
  // Without an error of its own, a route with a key is in conflict only by that key.
  const shared =
    own === undefined && ofKey && route.errors.includes(status) ? errorStatuses[status] : undefined
  const description = [own ?? shared, ofKey].filter(Boolean).join(' ')
  return description === '' ? { $ref } : { $ref, description }
}
