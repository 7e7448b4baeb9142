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
import { commonErrors, errorSchema, errorStatuses, type ErrorStatus } from './errors.ts'
import type { Route } from './route.ts'

export function openApiDocument(routes: readonly Route[]): Record<string, unknown> {
  const registry = new OpenAPIRegistry()
  registry.registerComponent('securitySchemes', 'apiKey', {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key, `berth_live_…`.',
  })
  registry.registerComponent('securitySchemes', 'session', {
    type: 'apiKey',
    in: 'cookie',
    name: 'berth_session',
    description: 'The session of a person who signed in; over HTTPS the name begins with `__Host-`.',
  })
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
      description: `Operations on a ${name}.`,
    })),
  })
  return { ...document }
}

function operation(route: Route): RouteConfig {
  const ofKey: ErrorStatus[] = route.takesIdempotencyKey ? [409] : []
  const statuses = [...new Set([...commonErrorsOf(route), ...route.errors, ...ofKey])].sort((a, b) => a - b)
  return {
    method: lowerCase[route.method],
    path: route.path,
    tags: [route.noun],
    operationId: operationId(route),
    summary: route.summary,
    description: [route.description, repetition(route), rateLimit(route)].filter(Boolean).join(' '),
    security: route.auth === 'caller' ? [{ apiKey: [] }, { session: [] }] : [],
    request: requestOf(route),
    responses: {
      [route.status]: {
        description: 'Done.',
        headers: headersOf(route, route.status),
        content: answerOf(route),
      },
      ...Object.fromEntries(statuses.map((status) => [status, errorResponse(route, status)])),
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

/** `unit.file.write` by PUT and by POST are one action, so the method is part of the id. */
function operationId({ action, method, body }: Route): string {
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

function requestOf(route: Route): NonNullable<RouteConfig['request']> {
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
              },
            },
          },
        }),
  }
}

function answerOf({ response, events }: Route): ZodContentObject {
  const names = Object.keys(events)
  const json = { 'application/json': { schema: response } }
  if (names.length === 0) return json
  const schema = z.string().meta({ description: `Server-Sent Events: ${names.join(', ')}.` })
  return { ...json, 'text/event-stream': { schema } }
}

const requestIdHeader = z.object({
  'x-request-id': z.string().meta({ description: "The caller's own, or one of ours." }),
})

const replayedHeader = z.object({
  'idempotent-replayed': z.literal('true').optional().meta({
    description: 'This is the answer of an earlier call with the same `Idempotency-Key`.',
  }),
})

const retryAfterHeader = z.object({ 'retry-after': z.string().meta({ description: 'Seconds.' }) })

function headersOf({ takesIdempotencyKey, status: done }: Route, status: number): z.ZodObject {
  // Other refusals come before anything is made, and are not kept.
  const isKept = takesIdempotencyKey && (status === done || status === 502)
  return requestIdHeader
    .extend(isKept ? replayedHeader.shape : {})
    .extend(status === 429 || status === 503 ? retryAfterHeader.shape : {})
}

function errorResponse(route: Route, status: ErrorStatus): RouteConfig['responses'][string] {
  return {
    description: errorStatuses[status],
    headers: headersOf(route, status),
    content: { 'application/json': { schema: errorSchema } },
  }
}
