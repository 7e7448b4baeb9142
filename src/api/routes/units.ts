// The endpoints of units (spec 4.2).

import { z } from 'zod'
import { createFormOf, createSchema } from '../../contract/create.ts'
import { exposedSchema, exposeSchema } from '../../contract/endpoint.ts'
import {
  execExitEventSchema,
  execOutputEventSchema,
  execResultSchema,
  execSchema,
} from '../../contract/exec.ts'
import { strict } from '../../contract/fields.ts'
import { logLineSchema, logPageSchema, logQuerySchema } from '../../contract/logs.ts'
import { runResultSchema } from '../../contract/run-result.ts'
import { sleepBodySchema } from '../../contract/sleep.ts'
import {
  unitChangeSchema,
  unitListQuerySchema,
  unitListSchema,
  unitSchema,
  unitSummaryQuerySchema,
  unitSummarySchema,
} from '../../contract/unit.ts'
import { createFromRecipe } from '../../domain/recipes/create.ts'
import { changeUnit } from '../../domain/units/change.ts'
import { createUnits, resumeCreate } from '../../domain/units/create.ts'
import { destroyUnit } from '../../domain/units/destroy.ts'
import { execInUnit } from '../../domain/units/exec.ts'
import { exposeUnit } from '../../domain/units/expose.ts'
import { getUnit } from '../../domain/units/get.ts'
import { listUnits, readUnitSummary } from '../../domain/units/list.ts'
import { readLogs } from '../../domain/units/logs.ts'
import { sleepUnit } from '../../domain/units/sleep.ts'
import { startUnit } from '../../domain/units/start.ts'
import { stopUnit } from '../../domain/units/stop.ts'
import { jsonBody } from '../http/body.ts'
import { errorSchema } from '../http/errors.ts'
import { endReasonSchema, streamExec, streamLogs } from './unit-streams.ts'
import { recordChange, recordCreate, recordExec } from './unit-records.ts'
import { defineRoute, noParams, noQuery, type Route } from '../route.ts'
import { writeFileJson, writeFileBytes, readFileRoute } from './file-content.ts'
import { aboutUnit } from './about-unit.ts'

const create = defineRoute({
  method: 'POST',
  path: '/v1/units',
  noun: 'unit',
  summary: 'Create a unit, or the units of a recipe',
  description: 'Answers once the unit is ready, at most after `waitTimeoutMs`; at once if `wait` is false.',
  action: 'unit.create',
  kind: 'change',
  rate: 'creations',
  params: noParams,
  query: noQuery,
  body: jsonBody(createSchema, { formOf: createFormOf }),
  status: 201,
  response: runResultSchema,
  errors: [402, 404, 409, 413, 415, 502],
  target: () => null,
  record: ({ body }) => recordCreate(body),
  outcome: ({ units: [unit] }) => (unit ? { target: unit.id } : {}),
  handle: (app, { body }, { caller, once }) =>
    'recipe' in body ? createFromRecipe(app, caller, body, once) : createUnits(app, caller, body, once),
  idempotent: { resume: (app, { body }, { caller }, kept) => resumeCreate(app, caller, body, kept) },
})

export const unitListRoute = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units',
  summary: "List the team's units, newest first or in another order",
  action: 'unit.list',
  kind: 'read',
  params: noParams,
  query: unitListQuerySchema,
  response: unitListSchema,
  errors: [404],
  target: () => null,
  record: ({ query }) => recordChange(query),
  handle: (app, { query }, { caller }) => listUnits(app, caller, query),
})

export const summary = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/summary',
  summary: 'Count units by state, and what they cost an hour',
  action: 'unit.summary',
  kind: 'read',
  params: noParams,
  query: unitSummaryQuerySchema,
  response: unitSummarySchema,
  errors: [404],
  target: () => null,
  record: ({ query }) => recordChange(query),
  handle: (app, { query }, { caller }) => readUnitSummary(app, caller, query),
})

const get = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}',
  summary: 'Get a unit',
  action: 'unit.get',
  kind: 'read',
  errors: [404],
  handle: (app, { params }, { caller }) => getUnit(app, caller, params.id),
})

export const change = defineRoute({
  ...aboutUnit,
  method: 'PATCH',
  path: '/v1/units/{id}',
  summary: 'Change the labels of a unit, or how long it lives',
  description:
    'Fields that are left out stay. A `timeToLive` counts from now. Does not count as use of the unit, and wakes nothing.',
  action: 'unit.change',
  kind: 'change',
  body: jsonBody(unitChangeSchema),
  errors: [404, 409, 413, 415],
  record: ({ body }) => recordChange(body),
  handle: (app, { params, body }, { caller }) => changeUnit(app, caller, params.id, body),
})

const exec = defineRoute({
  ...aboutUnit,
  method: 'POST',
  path: '/v1/units/{id}/exec',
  summary: 'Run a command in a unit',
  description:
    'The command is an argv array and runs without a shell. With `Accept: text/event-stream` its output is ' +
    'streamed. The command is killed if the client disconnects. If `cwd` is not a directory, the exit code is 126.',
  action: 'unit.exec',
  kind: 'change',
  beforeWritten: true,
  rate: 'execs',
  body: jsonBody(execSchema),
  response: execResultSchema,
  events: {
    stdout: execOutputEventSchema,
    stderr: execOutputEventSchema,
    exit: execExitEventSchema,
    error: errorSchema,
  },
  errors: [402, 404, 409, 413, 415, 502],
  record: ({ body }) => recordExec(body),
  handle: async (app, { params, body }, { caller, wantsStream, signal, written }) => {
    if (!wantsStream)
      return await execInUnit(app, caller, params.id, body, { signal, ...(written && { written }) })
    await written
    return streamExec(app, caller, params.id, body, signal)
  },
})

const logs = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}/logs',
  summary: "Read or follow a unit's log",
  description:
    'With `follow=true` it is a stream; the header `Last-Event-ID` resumes where an earlier stream ended.',
  action: 'unit.logs',
  kind: 'read',
  query: logQuerySchema,
  response: logPageSchema,
  events: { line: logLineSchema, end: endReasonSchema, error: errorSchema },
  errors: [404, 409, 502],
  record: ({ query }) => query,
  handle: async (app, { params, query }, { caller, lastEventId, signal }) =>
    query.follow
      ? streamLogs(app, caller, params.id, { ...query, since: lastEventId ?? query.since }, signal)
      : await readLogs(app, caller, params.id, query),
})

const expose = defineRoute({
  ...aboutUnit,
  method: 'POST',
  path: '/v1/units/{id}/expose',
  summary: 'Publish a port of a unit at a URL, or at a TCP endpoint',
  description:
    'A unit has at most one URL and one TCP endpoint. Publishing the same port again returns the existing endpoint. Another port keeps ' +
    'the address, and restarts the unit if it is a URL. Another mode, or `rotate`, gives it a new address, ' +
    'and restarts the unit if its environment uses `{{self:host}}`. Wakes a sleeping unit; a stopped unit is ' +
    'published and stays stopped.',
  action: 'unit.expose',
  kind: 'change',
  body: jsonBody(exposeSchema),
  response: exposedSchema,
  errors: [402, 404, 409, 413, 415, 502],
  record: ({ body }) => body,
  handle: (app, { params, body }, { caller }) => exposeUnit(app, caller, params.id, body),
})

const stop = defineRoute({
  ...aboutUnit,
  method: 'POST',
  path: '/v1/units/{id}/stop',
  summary: 'Stop a unit and keep its disk',
  action: 'unit.stop',
  kind: 'change',
  errors: [404, 409, 502],
  handle: (app, { params }, { caller }) => stopUnit(app, caller, params.id),
})

const start = defineRoute({
  ...aboutUnit,
  method: 'POST',
  path: '/v1/units/{id}/start',
  summary: 'Start a stopped or exited unit',
  action: 'unit.start',
  kind: 'change',
  errors: [402, 404, 409, 502],
  handle: (app, { params }, { caller }) => startUnit(app, caller, params.id),
})

const sleep = defineRoute({
  ...aboutUnit,
  method: 'POST',
  path: '/v1/units/{id}/sleep',
  summary: 'Set how long a unit, or its stack, may idle before it sleeps',
  description:
    'Does not count as use of the unit: it only moves `sleepsAt` by the new idle window, and wakes nothing. With ' +
    '`now` the units sleep at once. A unit with a command, a file transfer or a visit in progress ' +
    'refuses with 409. So does one that owes an answer on a database connection.',
  action: 'unit.sleep',
  kind: 'change',
  body: jsonBody(sleepBodySchema),
  response: strict({ units: z.array(unitSchema) }).meta({ id: 'SleepResult' }),
  errors: [402, 404, 409, 413, 415, 502],
  record: ({ body }) => body,
  handle: (app, { params, body }, { caller }) => sleepUnit(app, caller, params.id, body),
})

const destroy = defineRoute({
  ...aboutUnit,
  method: 'DELETE',
  path: '/v1/units/{id}',
  summary: 'Destroy a unit and its disk',
  action: 'unit.destroy',
  kind: 'change',
  beforeWritten: true,
  errors: [404, 409, 502],
  handle: (app, { params }, { caller, written }) => destroyUnit(app, caller, params.id, written),
})

export const unitRoutes: readonly Route[] = [
  create,
  unitListRoute,
  summary,
  get,
  change,
  exec,
  logs,
  writeFileJson,
  writeFileBytes,
  readFileRoute,
  expose,
  stop,
  start,
  sleep,
  destroy,
]
