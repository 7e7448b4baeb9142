// Runs a tool call as an operation of the API, through the one wrapper, with its audit row, rates, policy and errors.
// An error is returned as a result, because models see results and rarely protocol errors.

import type { App } from '../../app.ts'
import type { AppError } from '../../contract/errors.ts'
import type { Caller } from '../../domain/credentials/caller.ts'
import { isByteStream } from '../http/byte-stream.ts'
import { isWebSocketAnswer } from '../http/web-socket-answer.ts'
import { logError, toAppError } from '../http/errors.ts'
import type { OperationRequest, Operations } from '../operation.ts'
import { errorResult } from './errors.ts'
import type { SoFar } from './output.ts'
import { type SendProgress, whileReporting } from './progress.ts'
import type { PreparedTool, Tool, ToolResult } from './tool.ts'

/** What every operation of one message is called with. */
export type Sender = Pick<
  OperationRequest,
  'requestId' | 'presented' | 'peer' | 'onceAnswered' | 'bodyBytes'
> & {
  caller: Caller
  client: NonNullable<OperationRequest['client']>
}

export type ToolRequest = {
  args: unknown
  signal: AbortSignal
  /** Identifies the call, so that it takes effect once however often it is sent. */
  idempotencyKey: unknown
  /** Null if the client asked for no progress. */
  sendProgress: SendProgress | null
}

export async function runTool(
  app: App,
  operations: Operations,
  sender: Sender,
  tool: Tool,
  { args, signal, idempotencyKey, sendProgress }: ToolRequest,
): Promise<ToolResult> {
  const startedMs = app.clock.monotonicMs()
  const work = new AbortController()
  const named = isRecord(args) ? args : {}
  let prepared: PreparedTool | null = null
  let answer: unknown = null
  let soFar: SoFar | null = null
  const route = tool.routeFor(named)
  const run = async () =>
    await operations.runAs(
      sender.caller,
      {
        ...sender,
        route,
        params: tool.targetOf(named),
        query: {},
        readBody: async () => Buffer.alloc(0),
        inputFor: async (caller) => {
          prepared = tool.prepare(args)
          const { params = {}, query = {}, body } = await prepared.ask(app, caller)
          const bytes = body === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(body))
          return { params, query, body: bytes, idempotencyKey }
        },
        fromOwnPages: false,
        wantsStream: tool.streams && Object.keys(route.events).length > 0,
        lastEventId: null,
        stripeSignature: null,
        idempotencyKey: null,
        signal: AbortSignal.any([signal, work.signal]),
        abort: (reason) => work.abort(reason),
        addHeader: () => {},
      },
      {
        json: (_status, body) => {
          answer = body
        },
        stream: async (stream) => {
          if (isByteStream(stream) || isWebSocketAnswer(stream))
            throw new TypeError('a tool answers with JSON or with events only')
          answer = await prepared?.gather?.(stream, (told) => {
            soFar = told
          })
        },
      },
    )
  const describe = async () => soFar?.lastLine() || ((await prepared?.progress?.(app, sender.caller)) ?? null)
  try {
    await (sendProgress === null ? run() : whileReporting(app.clock, { send: sendProgress, describe }, run))
    if (prepared === null) throw new TypeError('an operation was answered before it was prepared')
    const elapsedMs = app.clock.monotonicMs() - startedMs
    return (prepared as PreparedTool).result(answer, { app, elapsedMs })
  } catch (error) {
    logError(app.log, error, sender.requestId)
    const known = toAppError(error)
    return errorResult(
      known,
      tool.name,
      sender.requestId,
      mayBeTold(known) ? ((soFar as SoFar | null)?.printed() ?? []) : [],
    )
  }
}

/** A caller that is no longer authenticated or allowed gets nothing more. */
function mayBeTold({ status }: AppError): boolean {
  return status !== 401 && status !== 403
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
