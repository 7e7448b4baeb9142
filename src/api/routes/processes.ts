// /v1/units/{id}/processes: commands that continue after the call that started them.

import { z } from 'zod'
import type { App } from '../../app.ts'
import { validation } from '../../contract/errors.ts'
import { execOutputEventSchema } from '../../contract/exec.ts'
import {
  type ProcessOutputPage,
  type ProcessOutputQuery,
  pidSignalledSchema,
  processEndSchema,
  processInputSchema,
  processInputTakenSchema,
  processKeepAwakeSchema,
  processListQuerySchema,
  processListSchema,
  processOutputQuerySchema,
  processOutputSchema,
  processSchema,
  processSignalSchema,
  processStartSchema,
  processTableSchema,
} from '../../contract/process.ts'
import type { Caller } from '../../domain/credentials/caller.ts'
import {
  deleteProcess,
  type Follow,
  followProcess,
  getProcess,
  listProcesses,
  readProcess,
  resumeStart,
  signalProcess,
  startProcess,
} from '../../domain/units/processes.ts'
import { keepProcessAwake, writeToProcess } from '../../domain/units/process-use.ts'
import { readProcessTable, signalPid } from '../../domain/units/process-table.ts'
import { jsonBody, noBody } from '../http/body.ts'
import { errorSchema } from '../http/errors.ts'
import { orderedFrames } from '../http/ordered-frames.ts'
import { eventStream, type EventStream } from '../http/sse.ts'
import { defineRoute, noQuery, pathId, type Route } from '../route.ts'
import { recordProcess } from './unit-records.ts'
import { aboutUnit } from './about-unit.ts'

const processParams = z.strictObject({ id: pathId, processId: pathId })
type ProcessParams = z.infer<typeof processParams>

/** The unit is the target of the audit row; the row's input names the process. */
const aboutProcess = {
  noun: 'process',
  params: processParams,
  query: noQuery,
  body: noBody,
  response: processSchema,
  target: ({ params }: { params: ProcessParams }) => params.id,
  record: ({ params }: { params: ProcessParams }) => ({ processId: params.processId }),
} as const

const start = defineRoute({
  ...aboutUnit,
  method: 'POST',
  path: '/v1/units/{id}/processes',
  summary: 'Start a background process in a unit',
  description:
    'The command is an argv array and runs without a shell. It continues after the call: read its state and output ' +
    'later. It is paused while the unit sleeps.',
  action: 'process.start',
  kind: 'change',
  rate: 'execs',
  body: jsonBody(processStartSchema),
  status: 201,
  response: processSchema,
  errors: [402, 404, 409, 413, 415, 502],
  record: ({ body }) => recordProcess(body),
  handle: (app, { params, body }, { caller, once }) => startProcess(app, caller, params.id, body, once),
  idempotent: {
    resume: (app, { params, body }, { caller }, kept) => resumeStart(app, caller, params.id, body, kept),
  },
})

const list = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}/processes',
  summary: "List a unit's background processes, oldest first",
  description: 'Includes ended processes, and those of earlier runs. Does not wake the unit.',
  action: 'process.list',
  kind: 'read',
  query: processListQuerySchema,
  response: processListSchema,
  errors: [404, 409, 502],
  record: ({ query }) => query,
  handle: (app, { params, query }, { caller }) => listProcesses(app, caller, params.id, query),
})

const table = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}/process-table',
  summary: 'List everything that runs in a unit, by pid',
  description: 'Also what no call started, with the pids that the unit itself sees. Wakes the unit.',
  action: 'process.table',
  kind: 'read',
  response: processTableSchema,
  errors: [402, 404, 409, 502],
  handle: (app, { params }, { caller }) => readProcessTable(app, caller, params.id),
})

const signalByPid = defineRoute({
  method: 'POST',
  path: '/v1/units/{id}/process-table/{pid}/signal',
  noun: 'process',
  summary: 'Send a signal to a process of a unit by its pid',
  description: 'To that process alone, also if no call started it.',
  action: 'process.signalPid',
  kind: 'change',
  params: z.strictObject({ id: pathId, pid: pathId }),
  query: noQuery,
  body: jsonBody(processSignalSchema),
  response: pidSignalledSchema,
  errors: [402, 404, 409, 413, 415, 502],
  target: ({ params }) => params.id,
  record: ({ params, body }) => ({ pid: params.pid, ...body }),
  handle: (app, { params, body }, { caller }) => signalPid(app, caller, params.id, params.pid, body.signal),
})

const get = defineRoute({
  ...aboutProcess,
  method: 'GET',
  path: '/v1/units/{id}/processes/{processId}',
  summary: 'Read a background process',
  action: 'process.read',
  kind: 'read',
  errors: [404, 409, 502],
  handle: (app, { params }, { caller }) => getProcess(app, caller, params.id, params.processId),
})

const output = defineRoute({
  ...aboutProcess,
  method: 'GET',
  path: '/v1/units/{id}/processes/{processId}/output',
  summary: 'Read or follow the output of a background process',
  description:
    'Returns the output after an offset. With `follow=true` it is a stream; the header `Last-Event-ID` resumes where an earlier ' +
    'stream ended. Does not wake the unit.',
  action: 'process.output',
  kind: 'read',
  query: processOutputQuerySchema,
  response: processOutputSchema,
  events: {
    stdout: execOutputEventSchema,
    stderr: execOutputEventSchema,
    end: processEndSchema,
    error: errorSchema,
  },
  errors: [404, 409, 502],
  record: ({ params, query }) => ({ processId: params.processId, ...query }),
  handle: async (app, { params, query }, { caller, lastEventId, signal }) =>
    query.follow
      ? streamOutput(app, caller, params, {
          after: lastEventId === null ? query.after : parseOffset(lastEventId),
          forMs: query.followMs ?? null,
          signal,
        })
      : await readPage(app, caller, params, query),
})

const signal = defineRoute({
  ...aboutProcess,
  method: 'POST',
  path: '/v1/units/{id}/processes/{processId}/signal',
  summary: 'Send a signal to a background process',
  action: 'process.signal',
  kind: 'change',
  rate: 'execs',
  body: jsonBody(processSignalSchema),
  errors: [402, 404, 409, 413, 415, 502],
  record: ({ params, body }) => ({ processId: params.processId, ...body }),
  handle: (app, { params, body }, { caller }) =>
    signalProcess(app, caller, params.id, params.processId, body.signal),
})

const input = defineRoute({
  ...aboutProcess,
  method: 'POST',
  path: '/v1/units/{id}/processes/{processId}/input',
  summary: 'Write to the standard input of a background process, or end it',
  description:
    'For a process that was started with `takesInput`. Calls are written one after the other. If a call fails, some of its data ' +
    'may have been written.',
  action: 'process.input',
  kind: 'change',
  body: jsonBody(processInputSchema),
  response: processInputTakenSchema,
  errors: [402, 404, 409, 413, 415, 502],
  // What is written may be secret.
  record: ({ params, body }) => ({
    processId: params.processId,
    bytes: body.bytes.length,
    ...(body.end && { end: true }),
  }),
  handle: (app, { params, body }, { caller }) =>
    writeToProcess(app, caller, params.id, params.processId, body),
})

const keepAwake = defineRoute({
  ...aboutProcess,
  method: 'POST',
  path: '/v1/units/{id}/processes/{processId}/keep-awake',
  summary: 'Keep a unit awake while one of its processes runs',
  description:
    'For a time from now on, which a further call renews. It ends with the process. It prevents neither an explicit sleep nor a ' +
    'stop by a limit.',
  action: 'process.keepAwake',
  kind: 'change',
  body: jsonBody(processKeepAwakeSchema, { isOptional: true }),
  errors: [402, 404, 409, 413, 415, 502],
  record: ({ params, body }) => ({ processId: params.processId, ...body }),
  handle: (app, { params, body }, { caller }) =>
    keepProcessAwake(app, caller, params.id, params.processId, body.forMs),
})

const remove = defineRoute({
  ...aboutProcess,
  method: 'DELETE',
  path: '/v1/units/{id}/processes/{processId}',
  summary: 'End a background process and delete its record',
  description: 'Kills the process and its children if it runs, and deletes its output.',
  action: 'process.delete',
  kind: 'change',
  errors: [402, 404, 409, 502],
  handle: (app, { params }, { caller }) => deleteProcess(app, caller, params.id, params.processId),
})

async function readPage(
  app: App,
  caller: Caller,
  { id, processId }: ProcessParams,
  { after, maxBytes }: ProcessOutputQuery,
): Promise<ProcessOutputPage> {
  const { process, pieces } = await readProcess(app, caller, id, processId, after, maxBytes)
  const frames = orderedFrames(after)
  const events = pieces.flatMap((piece) => frames.push(piece))
  // The rest of an incomplete character may follow in the next answer, unless the process has ended and this is all.
  const isAll = process.state !== 'running' && (pieces.at(-1)?.end ?? after) >= process.output.to
  if (isAll) events.push(...frames.end())
  const { state, exitCode } = process
  return { output: events, next: frames.told(), dropped: frames.dropped(), state, exitCode }
}

function streamOutput(
  app: App,
  caller: Caller,
  { id, processId }: ProcessParams,
  follow: Follow,
): EventStream {
  return eventStream(async (send) => {
    const frames = orderedFrames(follow.after)
    const tell = async (events: ReturnType<typeof frames.push>) => {
      for (const [index, { stream, ...data }] of events.entries()) {
        // Only the last event carries the offset: a client that is cut off before it gets all of them again.
        const at = index === events.length - 1 ? { id: `${frames.told()}` } : {}
        await send({ event: stream, ...at, data })
      }
    }
    let read = follow.after
    for await (const piece of followProcess(app, caller, id, processId, follow)) {
      await tell(frames.push(piece))
      read = piece.end
    }
    if (follow.signal.aborted) return
    const { state, exitCode, output } = await getProcess(app, caller, id, processId)
    // What ended only after the time to follow was over has more to tell.
    const isAll = state !== 'running' && read >= output.to
    if (isAll) await tell(frames.end())
    await send({ event: 'end', data: isAll ? { state, exitCode } : { state: 'running', exitCode: null } })
  })
}

function parseOffset(text: string): number {
  if (/^[0-9]{1,15}$/.test(text)) return Number(text)
  throw validation([{ path: 'Last-Event-ID', message: 'must be the id of an event of this stream' }])
}

export const processRoutes: readonly Route[] = [
  start,
  list,
  table,
  signalByPid,
  get,
  output,
  signal,
  input,
  keepAwake,
  remove,
]
