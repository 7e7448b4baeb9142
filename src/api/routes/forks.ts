// The endpoints of forks (spec 4.2, 4.3).

import { forkResultSchema, stackForkSchema, unitForkSchema } from '../../contract/fork.ts'
import { forkStack } from '../../domain/forks/fork-stack.ts'
import { forkUnit } from '../../domain/forks/fork-unit.ts'
import { resumeFork } from '../../domain/forks/result.ts'
import { jsonBody } from '../http/body.ts'
import { defineRoute, idParams, noQuery, type Route } from '../route.ts'

/** What both have in common. */
const forking = {
  method: 'POST',
  kind: 'change',
  rate: 'creations',
  params: idParams,
  query: noQuery,
  status: 201,
  response: forkResultSchema,
  events: {},
  errors: [402, 404, 409, 413, 415, 502],
  target: ({ params }: { params: { id: string } }) => params.id,
  record: ({ body }: { body: Record<string, unknown> }) => body,
} as const

const ofUnit = defineRoute({
  ...forking,
  path: '/v1/units/{id}/fork',
  noun: 'unit',
  summary: 'Copy a unit as it is now',
  description:
    'Its disk and volume, and where it runs and its isolation class can, its memory: `copied` says what was done. ' +
    'The source goes on, and one that sleeps or is stopped is not woken; the copy is then asleep or stopped too. ' +
    'The copy has its own id, address and host name, the same environment and secrets, and no URL.',
  action: 'unit.fork',
  body: jsonBody(unitForkSchema, { isOptional: true }),
  handle: (app, { params, body }, { caller, once }) => forkUnit(app, caller, params.id, body, once),
  idempotent: { resume: (app, { body }, { caller }, kept) => resumeFork(app, caller, body, kept) },
})

const ofStack = defineRoute({
  ...forking,
  path: '/v1/stacks/{id}/fork',
  noun: 'stack',
  summary: 'Copy a stack with all its units, as they are at one instant',
  description:
    'All of them or none, into a new stack. Each is copied as by a fork of its own; addresses of siblings in the ' +
    'environment are those of the copies. Units being created or destroyed, and those in `error`, are `skipped`.',
  action: 'stack.fork',
  body: jsonBody(stackForkSchema, { isOptional: true }),
  handle: (app, { params, body }, { caller, once }) => forkStack(app, caller, params.id, body, once),
  idempotent: { resume: (app, { body }, { caller }, kept) => resumeFork(app, caller, body, kept) },
})

export const forkRoutes: readonly Route[] = [ofUnit, ofStack]
