// Serves the services inside of a sandbox by the Connect protocol, in JSON and binary. The library reads and writes what is
// on the wire; a method takes its request as JSON and gives its answers as values.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { type DescMethod, type DescService, type JsonValue, type Message, toJson } from '@bufbuild/protobuf'
import {
  Code,
  type ConnectError,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from '@connectrpc/connect'
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node'
import { logError } from '../../http/errors.ts'
import { sendJson } from '../../http/response.ts'
import { orRefused } from '../refused.ts'
import type { SandboxCall } from '../sandbox-call.ts'
import { toConnectError } from './connect-errors.ts'

const sandboxCallKey = createContextKey<SandboxCall | null>(null)

/** One message, and what a sender may hold of this process's memory with it. */
export const MESSAGE_BYTES = 4 * 1024 * 1024

/** A message as the library takes it: bytes are bytes, and absent fields are left out. */
export type Answer = Record<string, unknown>

export type RpcCall = SandboxCall & {
  /** Aborts when the client is gone, or its time is over. */
  signal: AbortSignal
  /** How long the client gives the call; null for as long as it takes. */
  timeoutMs: number | null
}

export type Methods = Record<
  string,
  | { kind: 'one'; answer: (input: JsonValue, call: RpcCall) => Promise<Answer> }
  | { kind: 'answers'; answers: (input: JsonValue, call: RpcCall) => AsyncIterable<Answer> }
  | { kind: 'requests'; answer: (inputs: AsyncIterable<JsonValue>, call: RpcCall) => Promise<Answer> }
>

export type Rpc = {
  has: (path: string) => boolean
  /** Answers the request; never rejects. */
  serve: (path: string, call: SandboxCall) => Promise<void>
}

export function createRpc(services: { service: DescService; methods: Methods }[]): Rpc {
  const router = createConnectRouter({
    readMaxBytes: MESSAGE_BYTES,
    connect: true,
    grpc: false,
    grpcWeb: false,
  })
  for (const { service, methods } of services) {
    for (const method of service.methods) {
      const told = methods[method.name]
      if (told) router.rpc(method, implement(method, told) as never)
    }
  }
  const byPath = new Map(router.handlers.map((handler) => [handler.requestPath, handler]))
  return {
    has: (path) => byPath.has(path),
    serve: async (path, call) => {
      const { request, response } = call
      const handler = byPath.get(path)
      if (!handler)
        return sendJson(response, 404, { code: 'unimplemented', message: 'There is no such method.' })
      const values = createContextValues().set(sandboxCallKey, call)
      await pass(request, response, handler, values)
    },
  }
}

type Handler = ReturnType<typeof createConnectRouter>['handlers'][number]

/** The client may go away at any moment: then there is no one to tell. */
async function pass(
  request: IncomingMessage,
  response: ServerResponse,
  handler: Handler,
  values: ReturnType<typeof createContextValues>,
): Promise<void> {
  try {
    const answer = await handler(universalRequestFromNodeRequest(request, response, undefined, values))
    await universalResponseToNodeResponse(answer, response)
  } catch {
    response.destroy()
  }
}

function implement(method: DescMethod, told: Methods[string]): unknown {
  const read = (message: Message) => toJson(method.input, message)
  switch (told.kind) {
    case 'one':
      return async (message: Message, context: HandlerContext) =>
        await inConnect(context, (call) => told.answer(read(message), call))
    case 'requests':
      return async (messages: AsyncIterable<Message>, context: HandlerContext) =>
        await inConnect(context, (call) => told.answer(readAll(messages, read), call))
    case 'answers':
      return async function* (message: Message, context: HandlerContext) {
        try {
          yield* told.answers(read(message), callOf(context))
        } catch (error) {
          throw connectError(context, error)
        }
      }
  }
}

async function* readAll(
  messages: AsyncIterable<Message>,
  read: (message: Message) => JsonValue,
): AsyncGenerator<JsonValue> {
  for await (const message of messages) yield read(message)
}

async function inConnect<T>(context: HandlerContext, work: (call: RpcCall) => Promise<T>): Promise<T> {
  const call = callOf(context)
  try {
    return await orRefused(call, call.sender, async () => await work(call))
  } catch (error) {
    throw connectError(context, error)
  }
}

function connectError(context: HandlerContext, error: unknown): ConnectError {
  const known = toConnectError(error)
  const { app, requestId } = callOf(context)
  if (known.code === Code.Internal) logError(app.log, error, requestId)
  return known
}

function callOf({ values, signal, timeoutMs }: HandlerContext): RpcCall {
  const call = values.get(sandboxCallKey)
  if (call === null) throw new TypeError('a method was called without its request')
  return { ...call, signal: AbortSignal.any([call.stopping, signal]), timeoutMs: timeoutMs() ?? null }
}
