// /v1/units/{id}/code: code in contexts that keep their variables (docs/guides/code.md).

import { z } from 'zod'
import {
  codeBeginSchema,
  codeContextCreateSchema,
  codeContextListSchema,
  codeContextSchema,
  codeEndSchema,
  codeFailureSchema,
  codePrintedSchema,
  codeResultSchema,
  codeRunSchema,
  codeValueSchema,
} from '../../contract/code.ts'
import type { App } from '../../app.ts'
import type { CodeRun } from '../../contract/code.ts'
import type { Caller } from '../../domain/credentials/caller.ts'
import { changeContext, createContext, listContexts, runCode, runCodeWhole } from '../../domain/units/code.ts'
import { namesOf } from '../../domain/audit/mask.ts'
import { jsonBody, noBody } from '../http/body.ts'
import { errorSchema } from '../http/errors.ts'
import { eventStream, type EventStream } from '../http/sse.ts'
import { defineRoute, noQuery, pathId, type Route } from '../route.ts'
import { aboutUnit } from './about-unit.ts'

const contextParams = z.strictObject({ id: pathId, contextId: pathId })
type ContextParams = z.infer<typeof contextParams>

const aboutContext = {
  noun: 'context',
  kind: 'change',
  params: contextParams,
  query: noQuery,
  body: noBody,
  response: codeContextSchema,
  errors: [402, 404, 409, 502],
  target: ({ params }: { params: ContextParams }) => params.id,
  record: ({ params }: { params: ContextParams }) => ({ context: params.contextId }),
} as const

const run = defineRoute({
  ...aboutUnit,
  method: 'POST',
  path: '/v1/units/{id}/code',
  summary: 'Run code in a unit and get its values',
  description:
    'In a context that keeps its variables, of a unit of the image `berth.local/code:1`. Values, tables and plots come by MIME type. ' +
    'With `Accept: text/event-stream` they come while the code runs. The code is interrupted if the client disconnects.',
  action: 'code.run',
  kind: 'change',
  beforeWritten: true,
  rate: 'execs',
  body: jsonBody(codeRunSchema),
  response: codeResultSchema,
  events: {
    begin: codeBeginSchema,
    stdout: codePrintedSchema,
    stderr: codePrintedSchema,
    result: codeValueSchema,
    exception: codeFailureSchema,
    end: codeEndSchema,
    error: errorSchema,
  },
  errors: [402, 404, 409, 413, 415, 502],
  record: ({ body: { code, env, ...plain } }) => ({
    ...plain,
    codeBytes: Buffer.byteLength(code),
    ...(env && { env: namesOf(env) }),
  }),
  handle: async (app, { params, body }, { caller, wantsStream, signal, written }) => {
    if (!wantsStream)
      return await runCodeWhole(app, caller, params.id, body, { signal, ...(written && { written }) })
    await written
    return streamCode(app, caller, params.id, body, signal)
  },
})

function streamCode(
  app: App,
  caller: Caller,
  id: string,
  request: CodeRun,
  signal: AbortSignal,
): EventStream {
  return eventStream(async (send) => {
    const end = await runCode(app, caller, id, request, {
      signal,
      onEvent: async (event) => {
        if (event.type === 'begin') {
          const { context, language } = event
          await send({ event: 'begin', data: { context, language } })
        } else if (event.type === 'result') await send({ event: 'result', data: event.value })
        else if (event.type === 'exception') await send({ event: 'exception', data: event.failure })
        else await send({ event: event.type, data: { data: event.text } })
      },
    })
    await send({ event: 'end', data: end })
  })
}

const create = defineRoute({
  ...aboutUnit,
  method: 'POST',
  path: '/v1/units/{id}/code/contexts',
  summary: 'Make a context for code',
  description:
    'A context has variables of its own and runs one piece of code at a time; several run at once.',
  action: 'code.context.create',
  kind: 'change',
  rate: 'execs',
  body: jsonBody(codeContextCreateSchema),
  response: codeContextSchema,
  errors: [402, 404, 409, 413, 415, 502],
  record: ({ body: { env, ...plain } }) => ({ ...plain, env: namesOf(env ?? {}) }),
  handle: (app, { params, body }, { caller }) => createContext(app, caller, params.id, body),
})

const list = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}/code/contexts',
  summary: 'List the contexts of a unit',
  description: 'Wakes the unit.',
  action: 'code.context.list',
  kind: 'read',
  response: codeContextListSchema,
  errors: [402, 404, 409, 502],
  handle: (app, { params }, { caller }) => listContexts(app, caller, params.id),
})

const restart = defineRoute({
  ...aboutContext,
  method: 'POST',
  path: '/v1/units/{id}/code/contexts/{contextId}/restart',
  summary: 'Begin a context anew, without its variables',
  description: 'Code that runs in it ends. Also for a context that is lost.',
  action: 'code.context.restart',
  handle: (app, { params }, { caller }) => changeContext(app, caller, params.id, 'restart', params.contextId),
})

const interrupt = defineRoute({
  ...aboutContext,
  method: 'POST',
  path: '/v1/units/{id}/code/contexts/{contextId}/interrupt',
  summary: 'Interrupt the code that runs in a context',
  description: 'As Ctrl-C does: its variables stay. Does nothing if no code runs.',
  action: 'code.context.interrupt',
  handle: (app, { params }, { caller }) =>
    changeContext(app, caller, params.id, 'interrupt', params.contextId),
})

const remove = defineRoute({
  ...aboutContext,
  method: 'DELETE',
  path: '/v1/units/{id}/code/contexts/{contextId}',
  summary: 'Delete a context',
  description: 'Its variables are gone, and code that runs in it ends.',
  action: 'code.context.delete',
  handle: (app, { params }, { caller }) => changeContext(app, caller, params.id, 'delete', params.contextId),
})

export const unitCodeRoutes: readonly Route[] = [run, create, list, restart, interrupt, remove]
