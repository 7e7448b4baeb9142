// What an operation's document says of its request: parameters, headers, the body (openapi.ts).

import type { RouteConfig } from '@asteasolutions/zod-to-openapi'
import { z } from 'zod'
import { idempotencyKeySchema } from '../contract/idempotency.ts'
import type { OperationDoc } from './operation-docs/doc.ts'
import type { Route } from './route.ts'

const callerHeaders = z.object({
  'x-berth-team': z.string().optional().meta({
    description:
      'The team that a session acts in. Default: the team used last. A key always acts in its own team.',
  }),
})

const keyedHeaders = callerHeaders.extend({
  'Idempotency-Key': idempotencyKeySchema.optional().meta({
    description: 'A name for this call, such as a random UUID, that makes it safe to repeat.',
  }),
})

export function requestOf(route: Route, doc: OperationDoc): NonNullable<RouteConfig['request']> {
  const { params, query, body, auth } = route
  return {
    ...(auth === 'caller' ? { headers: route.takesIdempotencyKey ? keyedHeaders : callerHeaders } : {}),
    ...(params instanceof z.ZodObject && Object.keys(params.shape).length > 0
      ? { params: describeParameters(route, params) }
      : {}),
    ...(query instanceof z.ZodObject && Object.keys(query.shape).length > 0
      ? { query: describeParameters(route, query, doc.query) }
      : {}),
    ...(body.kind === 'none'
      ? {}
      : {
          body: {
            required: body.isOptional !== true,
            content: {
              [mediaOf(body)]: {
                schema: body.schema,
                ...(doc.request === undefined ? {} : { example: doc.request }),
              },
            },
          },
        }),
  }
}

/** Descriptions of parameters that have the same meaning in every route. */
const parameterTexts: Record<string, string> = {
  limit: 'The largest number of entries in a page.',
  cursor: 'The `next` of an earlier page.',
  path: 'An absolute path in the unit.',
  maxBytes: 'The largest number of bytes in an answer.',
  cols: 'Columns of the terminal.',
  rows: 'Rows of the terminal.',
  name: 'The name of the recipe.',
  token: 'The token of the invitation, from its link.',
  processId: 'The id of the process.',
  contextId: 'The id of the context.',
  pid: 'The number of the process in the unit.',
  userId: 'The id of the member.',
  inviteId: 'The id of the invitation.',
}

/** Adds a description to each parameter whose schema has none. */
function describeParameters(
  { path }: Route,
  parameters: z.ZodObject,
  examples: OperationDoc['query'] = {},
): z.ZodObject {
  const collection = /^\/v1\/(\w+)s\/\{id\}/.exec(path)?.[1] ?? ''
  const id = collection === 'stack' ? 'The id or name of the stack.' : `The id of the ${collection}.`
  return z.strictObject(
    Object.fromEntries(
      Object.entries(parameters.shape).map(([name, schema]) => {
        const text = name === 'id' ? id : parameterTexts[name]
        const isDescribed = (schema as z.ZodType).description !== undefined || text === undefined
        const added = {
          ...(isDescribed ? {} : { description: text }),
          ...(name in examples ? { example: examples[name] } : {}),
        }
        return [name, Object.keys(added).length === 0 ? schema : describedAs(schema as z.ZodType, added)]
      }),
    ),
  )
}

/** What the schema says of itself stays. */
function describedAs(schema: z.ZodType, added: Record<string, unknown>): z.ZodType {
  return schema.meta({ ...schema.meta(), ...added })
}

function mediaOf({ kind, media }: Route['body']): string {
  if (media !== undefined) return media
  return kind === 'json' ? 'application/json' : 'application/octet-stream'
}
