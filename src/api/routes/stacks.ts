// The endpoints of stacks (spec 4.3).

import {
  stackCreateSchema,
  stackListQuerySchema,
  stackListSchema,
  stackSchema,
} from '../../contract/stack.ts'
import { createStack } from '../../domain/stacks/create.ts'
import { destroyStack } from '../../domain/stacks/destroy.ts'
import { getStack } from '../../domain/stacks/get.ts'
import { listStacks } from '../../domain/stacks/list.ts'
import { jsonBody, noBody } from '../http/body.ts'
import { defineRoute, idParams, noParams, noQuery, type Route } from '../route.ts'

const create = defineRoute({
  method: 'POST',
  path: '/v1/stacks',
  noun: 'stack',
  summary: 'Create a stack',
  description:
    'The stack has no units yet: create them with the field `stack`. Creating a unit also creates its stack if that does not exist.',
  action: 'stack.create',
  kind: 'change',
  params: noParams,
  query: noQuery,
  body: jsonBody(stackCreateSchema),
  status: 201,
  response: stackSchema,
  errors: [409, 413, 415],
  target: () => null,
  record: ({ body }) => body,
  outcome: ({ id }) => ({ target: id }),
  handle: (app, { body }, { caller, once }) => createStack(app, caller, body, once),
  idempotent: true,
})

const list = defineRoute({
  method: 'GET',
  path: '/v1/stacks',
  noun: 'stack',
  summary: "List the team's stacks with their units, newest first",
  description: 'A page ends early if its stacks have more than 500 units together.',
  action: 'stack.list',
  kind: 'read',
  params: noParams,
  query: stackListQuerySchema,
  body: noBody,
  response: stackListSchema,
  errors: [],
  target: () => null,
  record: ({ query }) => query,
  handle: (app, { query }, { caller }) => listStacks(app, caller, query),
})

/** What routes about one stack share. */
const aboutStack = {
  path: '/v1/stacks/{id}',
  noun: 'stack',
  params: idParams,
  query: noQuery,
  body: noBody,
  response: stackSchema,
  target: ({ params }: { params: { id: string } }) => params.id,
  record: () => null,
  outcome: ({ id }: { id: string }) => ({ target: id }),
} as const

const get = defineRoute({
  ...aboutStack,
  method: 'GET',
  summary: 'Get a stack, by its id or name, with its units',
  action: 'stack.get',
  kind: 'read',
  errors: [404],
  handle: (app, { params }, { caller }) => getStack(app, caller, params.id),
})

const destroy = defineRoute({
  ...aboutStack,
  method: 'DELETE',
  summary: 'Delete a stack, by its id or name, and destroy its units',
  description: 'Returns the stack with the units that were destroyed. Its name is free again.',
  action: 'stack.destroy',
  kind: 'change',
  errors: [404, 502],
  handle: (app, { params }, { caller }) => destroyStack(app, caller, params.id),
})

export const stackRoutes: readonly Route[] = [create, list, get, destroy]
