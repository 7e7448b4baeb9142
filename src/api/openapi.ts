// The OpenAPI 3.1 document, written from the list of routes: what a route does not say is not in it.

import {
  OpenAPIRegistry,
  OpenApiGeneratorV31,
  type RouteConfig,
  type ZodContentObject,
} from '@asteasolutions/zod-to-openapi'
import { z } from 'zod'
import { idempotencyKeySchema } from '../contract/idempotency.ts'
import { limits } from '../contract/limits.ts'
import { commonErrors, errorSchema, errorStatuses, type ErrorStatus } from './http/errors.ts'
import type { OperationDoc } from './operation-docs/doc.ts'
import { operationDocs } from './operation-docs/operation-docs.ts'
import type { Route } from './route.ts'

export function openApiDocument(routes: readonly Route[]): Record<string, unknown> {
  const registry = new OpenAPIRegistry()
  registry.registerComponent('securitySchemes', 'apiKey', {
    type: 'http',
    scheme: 'bearer',
    description:
      'An API key, `berth_live_…`, or the access token of a program that somebody has connected, `berth_oat_…`.',
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
    description: "The caller's own, or one of ours.",
    required: true,
    schema: { type: 'string' },
  })
  registry.registerComponent('headers', 'RetryAfter', {
    description: 'Seconds.',
    required: true,
    schema: { type: 'string' },
  })
  registry.registerComponent('headers', 'IdempotentReplayed', {
    description: 'This is the answer of an earlier call with the same `Idempotency-Key`.',
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
        "an error repeats it: the caller's own, if it is 1 to 128 printable ASCII characters without spaces, else one of ours. " +
        'Fields that are not known are refused. HEAD answers what GET would, without the body.',
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

/** What the routes of a noun are about; a test asks for one of each. */
export const nouns: Record<string, string> = {
  unit: 'Containers: make them, run commands in them, read and write their files, publish them, put them to sleep.',
  process: 'Commands that outlive the call that begins them: their state, output, signals and end.',
  stack: 'Groups of units that share a private network, and are put to sleep and copied together.',
  recipe: 'Templates that make one or more units, such as a database, and tell how to reach it.',
  agent: 'Every credential of a team that acts: keys, and agents that were connected.',
  key: 'API keys and their policies.',
  'audit event': 'Every authenticated call of the team.',
  team: 'Teams own units, keys and credits.',
  member: 'The people of a team.',
  invitation: 'Invitations to a team.',
  payment: 'Buying credits.',
  account: 'The person who is signed in, prices, quotas and usage.',
  'support message': 'Messages to the operator of this service.',
  service: 'This document.',
}

/** Every error status of a route. */
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
        content: answerOf(route, doc),
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

/** Without credentials and input there is little that can go wrong. */
function commonErrorsOf({ auth }: Route): readonly ErrorStatus[] {
  return auth === 'caller' ? commonErrors : [400, 429, 500, 503]
}

/** The shared responses refer to it by name, so that no route brings it along. */
function errorComponent() {
  const { $defs } = z.toJSONSchema(errorSchema)
  return $defs?.['Error'] as Parameters<OpenAPIRegistry['registerComponent']>[2]
}

/** Throws for a route that nobody has described. */
function docOf(route: Route): OperationDoc {
  const doc = operationDocs[operationId(route)]
  if (!doc) throw new Error(`src/api/operation-docs says nothing of ${operationId(route)}`)
  return doc
}

function cost(doc: OperationDoc): string | undefined {
  return doc.cost === undefined ? undefined : `Cost: ${doc.cost}`
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
    'With `Idempotency-Key` the call can be sent again, by any credential of the team: for 24 hours the same ' +
    'request with the same key gets the first answer and makes nothing, also when that answer never arrived; ' +
    'a repetition that comes while the first call is under way waits as that does. Another request with the ' +
    'key is 409. A call refused before anything was made leaves its key free.'
  )
}

const callerHeaders = z.object({
  'x-berth-team': z
    .string()
    .optional()
    .meta({ description: 'The team a session acts in; left out, the one last used. A key has its own.' }),
})

const keyedHeaders = callerHeaders.extend({
  'Idempotency-Key': idempotencyKeySchema.optional().meta({
    description: 'Names this call, so that it can be repeated; a random UUID, say.',
  }),
})

function requestOf(route: Route, doc: OperationDoc): NonNullable<RouteConfig['request']> {
  const { params, query, body, auth } = route
  return {
    ...(auth === 'caller' ? { headers: route.takesIdempotencyKey ? keyedHeaders : callerHeaders } : {}),
    ...(params instanceof z.ZodObject && Object.keys(params.shape).length > 0 ? { params } : {}),
    ...(query instanceof z.ZodObject && Object.keys(query.shape).length > 0 ? { query } : {}),
    ...(body.kind === 'none'
      ? {}
      : {
          body: {
            required: body.isOptional !== true,
            content: {
              [body.kind === 'json' ? 'application/json' : 'application/octet-stream']: {
                schema: body.schema,
                ...(doc.request === undefined ? {} : { example: doc.request }),
              },
            },
          },
        }),
  }
}

function answerOf({ response, events }: Route, doc: OperationDoc): ZodContentObject {
  const names = Object.keys(events)
  const json = { 'application/json': { schema: response, example: doc.response } }
  if (names.length === 0) return json
  const schema = z.string().meta({ description: `Server-Sent Events: ${names.join(', ')}.` })
  return { ...json, 'text/event-stream': { schema } }
}

const requestId = { 'x-request-id': { $ref: '#/components/headers/RequestId' } }
const retryAfter = { 'retry-after': { $ref: '#/components/headers/RetryAfter' } }
const replayed = { 'idempotent-replayed': { $ref: '#/components/headers/IdempotentReplayed' } }

function headersOf({ takesIdempotencyKey }: Route) {
  return takesIdempotencyKey ? { ...requestId, ...replayed } : requestId
}

type SharedResponse = Parameters<OpenAPIRegistry['registerComponent']>[2] & { description: string }

/** One response for each status: routes refer to it, and say more where they have more to say. */
const sharedErrors = Object.entries(errorStatuses).map(([status, description]): [string, SharedResponse] => [
  status,
  {
    description,
    headers: {
      ...requestId,
      ...(status === '429' || status === '503' ? retryAfter : {}),
      // Other refusals come before anything is made, and are not kept.
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
  const description = [own, ofKey].filter(Boolean).join(' ')
  const $ref = `#/components/responses/Error${status}`
  return description === ''
    ? { $ref }
    : { $ref, description: own ? description : `${errorStatuses[status]} ${description}` }
}
