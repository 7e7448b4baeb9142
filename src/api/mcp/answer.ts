// Answers an authenticated MCP request. Each of its messages becomes one operation, the tool's own (run-tool.ts) or
// that of the protocol (protocol-route.ts), and so gets one row in the audit log. Nothing is kept between requests.

import type { App } from '../../app.ts'
import { AppError } from '../../contract/errors.ts'
import type { Caller } from '../../domain/credentials/caller.ts'
import type { Presented } from '../../domain/credentials/authenticate.ts'
import { bodyBytesOf, readBody } from '../http/body.ts'
import { callerGone, toAppError } from '../http/errors.ts'
import { parseJson } from '../http/json.ts'
import type { Operations } from '../operation.ts'
import { answerBatch } from './batch.ts'
import { followedBy, readWhole, toAnswer, toWebRequest, type WebAnswer } from './bridge.ts'
import type { Cancellations } from './cancellations.ts'
import { agentBehind, type ClientInfo, clientInfoOf, newSessionId } from './client-info.ts'
import type { McpExchange } from './exchange.ts'
import { errorAnswer, faultIn, headOf, isToolCall, type MessageHead, refusedBy } from './messages.ts'
import { messageBody, protocolRoute } from './protocol-route.ts'
import { runTool, type Sender } from './run-tool.ts'
import { isEventStream, streamedIfSlow } from './streamed-if-slow.ts'
import { tools } from './tools/tools.ts'
import type { Exchange, Protocol } from './transport.ts'
import { onceClosed } from '../http/gone.ts'

type World = {
  app: App
  operations: Operations
  protocol: () => Promise<Protocol>
  cancellations: Cancellations
}

/** A request of an authenticated caller. */
type Call = McpExchange & {
  presented: Presented
  caller: Caller
  sessionId: string | null
  /** The client's name and version as it states them; null if it states none. */
  info: ClientInfo | null
  /** Aborts when the client disconnects. */
  gone: AbortSignal
}

/** An answer, and the error it reports; null if it reports none. */
type Outcome = { answer: WebAnswer; fault: AppError | null }

const toolsByName = new Map(tools.map((tool) => [tool.name, tool]))

/** Throws an error that is answered as plain HTTP, outside of the protocol. */
export async function answerRequest(world: World, call: Call): Promise<WebAnswer> {
  let message: unknown
  try {
    message = await readMessage(world, call)
  } catch (error) {
    const fault = toAppError(error)
    const answer = errorAnswer(fault, fault.status === 400 ? -32_700 : -32_000, null)
    return await recorded(world, call, null, async () => ({ answer, fault }))
  }
  if (!Array.isArray(message)) return await answerOne(world, call, message)
  return await answerBatch(message, {
    one: async (each) => await answerOne(world, call, each),
    refuse: async (why) => {
      const fault = new AppError('validation', 400, why)
      const answer = errorAnswer(fault, -32_600, null)
      return await recorded(world, call, null, async () => ({ answer, fault }))
    },
  })
}

async function readMessage({ operations }: World, call: Call): Promise<unknown> {
  const { request, caller, gone: signal } = call
  if (request.method !== 'POST') throw new AppError('method_not_allowed', 405, 'Send messages by POST.')
  const { onceAnswered } = senderOf(call)
  await operations.admitBody(caller, { bodyBytes: bodyBytesOf(request, messageBody), signal, onceAnswered })
  return parseJson(await readBody(request, messageBody))
}

async function answerOne(world: World, sent: Call, message: unknown): Promise<WebAnswer> {
  const head = headOf(message)
  const call = { ...sent, info: clientInfoOf(message) ?? sent.info }
  if (isToolCall(head)) return await answerToolCall(world, call, message, head)
  if (head.method === 'notifications/cancelled') {
    world.cancellations.cancel({ ...nameOf(call), id: head.requestId })
  }
  return await recorded(world, call, head, async () => {
    const response = await dispatch(world, call, message, { callTool: async () => null })
    const answer = await readWhole(toAnswer(response))
    const fault = await faultIn(answer)
    if (head.method !== 'initialize' || fault !== null) return { answer, fault }
    const headers = { ...answer.headers, 'mcp-session-id': newSessionId(call.info) }
    return { answer: { ...answer, headers }, fault }
  })
}

/** The tool's operation writes the audit row. If no operation began, the message gets a row of its own. */
async function answerToolCall(
  world: World,
  call: Call,
  message: unknown,
  head: MessageHead,
): Promise<WebAnswer> {
  let ran = false
  const callTool: Exchange['callTool'] = async (asked) => {
    const tool = toolsByName.get(asked.name)
    if (!tool) return null
    ran = true
    const work = new AbortController()
    const ended = world.cancellations.begin({ ...nameOf(call), id: head.id }, work)
    try {
      return await runTool(world.app, world.operations, senderOf(call), tool, {
        args: asked.args,
        signal: AbortSignal.any([goneWith(asked.signal), call.gone, call.stopping, work.signal]),
        idempotencyKey: asked.meta['berth/idempotencyKey'] ?? null,
        sendProgress: asked.sendProgress,
      })
    } finally {
      ended()
    }
  }
  const pending = dispatch(world, call, message, { callTool }).then(toAnswer)
  const answer = await streamedIfSlow(world.app.clock, pending)
  const { body } = answer
  const record = async (fault: AppError) =>
    await recorded(world, call, head, async () => ({ answer: { ...answer, body }, fault }))
  if (body !== null && isEventStream(answer)) {
    const finish = async () => {
      if (!ran) await record(refusedBy(400, 'The call was refused before it began.'))
    }
    return { ...answer, body: followedBy(body, finish) }
  }
  return ran ? answer : await record(refusedBy(answer.status, 'The message was refused.'))
}

async function dispatch(world: World, call: Call, message: unknown, exchange: Exchange): Promise<Response> {
  const protocol = await world.protocol()
  const url = new URL('/mcp', world.app.config.publicUrl).href
  const request = toWebRequest(call.request, { url, signal: call.gone })
  return await protocol.answer(request, message, exchange)
}

/**
 * Runs the answer to a message as an operation, so that it gets an audit row. Returns the operation's answer, also if
 * that is a refusal; if the operation could not run, for example because of a rate limit, returns that error.
 */
async function recorded(
  { operations }: World,
  call: Call,
  head: MessageHead | null,
  work: () => Promise<Outcome>,
): Promise<WebAnswer> {
  let outcome: Outcome | null = null
  const route = protocolRoute(head, async () => {
    outcome = await work()
    if (outcome.fault !== null) throw outcome.fault
  })
  try {
    await operations.runAs(
      call.caller,
      {
        ...senderOf(call),
        route,
        params: {},
        query: {},
        readBody: async () => Buffer.alloc(0),
        fromOwnPages: false,
        wantsStream: false,
        lastEventId: null,
        stripeSignature: null,
        idempotencyKey: null,
        signal: AbortSignal.any([call.gone, call.stopping]),
        abort: () => {},
        addHeader: () => {},
      },
      {
        json: () => {},
        stream: async () => {
          throw new TypeError('the protocol route cannot stream')
        },
      },
    )
  } catch (error) {
    if (outcome !== null && (outcome as Outcome).fault === error) return (outcome as Outcome).answer
    return errorAnswer(toAppError(error), -32_000, head?.id ?? null)
  }
  if (outcome === null) throw new TypeError('an operation ended before it began')
  return (outcome as Outcome).answer
}

/** The protocol library aborts for its own reasons, which are not errors of this service. */
function goneWith(signal: AbortSignal): AbortSignal {
  const gone = new AbortController()
  if (signal.aborted) gone.abort(callerGone())
  signal.addEventListener('abort', () => gone.abort(callerGone()), { once: true })
  return gone.signal
}

function nameOf({ caller, sessionId }: Call): { credentialId: string; sessionId: string | null } {
  return { credentialId: caller.credentialId, sessionId }
}

function senderOf({ id, response, presented, peer, caller, info }: Call): Sender {
  return {
    requestId: id,
    // Admitted before it was read.
    bodyBytes: 0,
    presented,
    peer,
    caller,
    client: { via: 'mcp', ...(info === null ? {} : agentBehind(info)) },
    onceAnswered: (callback) => onceClosed(response, callback),
  }
}
