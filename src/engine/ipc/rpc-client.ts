// The server's side of low-latency calls (rpc-server.ts): one connection, which the next call reopens after it broke.

import { type JsonLinesClient, openJsonLinesClient } from '../../lib/ipc/json-lines-rpc.ts'
import { createReconnecting } from '../../lib/ipc/reconnecting.ts'
import { isEngineError } from '../errors.ts'
import { awayError, engineErrorIn, silenceError } from './errors.ts'
import type { EngineTransport } from './transport.ts'
import {
  RPC_MAX_BYTES,
  rpcResponseSchema,
  type RpcOperation,
  type RpcRequest,
  type RpcResponse,
} from './rpc-protocol.ts'
import { isRefusal, whileRestarting } from './while-restarting.ts'

/** Resolves to the encoded answer; rejects with an EngineError. */
export type RpcCall = (operation: RpcOperation, request: unknown, deadlineMs: number) => Promise<unknown>

type Asked = Omit<RpcRequest, 'id'>

export function connectRpc({ transport, epoch }: { transport: EngineTransport; epoch: number }): RpcCall {
  const connected = createReconnecting(() => openConnection(transport))

  return async (operation, request, deadlineMs) => {
    const ask = async () => await connected().call({ epoch, operation, request }, deadlineMs)
    const answer = await whileRestarting(transport.waitsMs, operation, ask, { mayRepeat: endedInOrder })
    if ('error' in answer) throw engineErrorIn(answer)
    return answer.answer
  }
}

/** All of them can be repeated. One that was cut, since its host is away, has a cause of ours. */
function endedInOrder(error: unknown): boolean {
  if (!isEngineError(error, 'engine_away')) return false
  const { cause } = error
  return cause === undefined || isRefusal(cause)
}

function openConnection(transport: EngineTransport): JsonLinesClient<Asked, RpcResponse> {
  const socket = transport.connectQuick()
  // Like idle HTTP connections: only calls in progress keep the process alive.
  socket.unref()
  return openJsonLinesClient(socket, {
    mostBytes: RPC_MAX_BYTES,
    hear: (line) => rpcResponseSchema.parse(JSON.parse(line)),
    late: ({ operation }: Asked) => silenceError(operation),
    over: awayError,
  })
}
