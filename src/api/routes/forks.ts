// The endpoints of forks (spec 4.2, 4.3).

import {
  forkResultSchema,
  type StackFork,
  stackForkSchema,
  type UnitFork,
  unitForkSchema,
} from '../../contract/fork.ts'
import { forkStack } from '../../domain/forks/fork-stack.ts'
import { forkUnit } from '../../domain/forks/fork-unit.ts'
import { resumeFork } from '../../domain/forks/result.ts'
import { jsonBody } from '../http/body.ts'
import { recordFork } from './unit-records.ts'
import { defineRoute, idParams, noQuery, type Route } from '../route.ts'

/** What both routes share. */
const forking = {
  method: 'POST',
  kind: 'change',
  rate: 'creations',
  params: idParams,
  query: noQuery,
  status: 201,
  response: forkResultSchema,
  errors: [402, 404, 409, 413, 415, 502],
  target: ({ params }: { params: { id: string } }) => params.id,
  record: ({ body }: { body: UnitFork | StackFork }) => recordFork(body),
} as const

const ofUnit = defineRoute({
  ...forking,
  path: '/v1/units/{id}/fork',
  noun: 'unit',
  summary: 'Copy a unit as it is now',
  description:
    'Copies its disk and volume, and the memory of a running unit where its isolation class supports that: see `copied`. ' +
    'The source keeps running. A sleeping or stopped source is not woken; its copy is then asleep or stopped too. ' +
    'The copy has its own id, address, host name and meter, the same secrets, and no URL. Its environment is that of the source, with `env` over it.',
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
    'Copies all units or none, into a new stack. Each unit is copied as if forked alone; addresses of siblings in the ' +
    'environment become those of the copies. Units being created or destroyed, and those in `error`, are listed in `skipped`.',
  action: 'stack.fork',
  body: jsonBody(stackForkSchema, { isOptional: true }),
  handle: (app, { params, body }, { caller, once }) => forkStack(app, caller, params.id, body, once),
  idempotent: { resume: (app, { body }, { caller }, kept) => resumeFork(app, caller, body, kept) },
})

export const forkRoutes: readonly Route[] = [ofUnit, ofStack]
