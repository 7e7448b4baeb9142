// The engine's side of low-latency calls: JSON lines on a socket of their own (json-lines-rpc.ts), each with the
// epoch of the server. As over HTTP, an operation that has begun runs to its end, even if its caller disconnects.

import { createServer, type Socket } from 'node:net'
import { parseLine } from '../../lib/ipc/call-lines.ts'
import { serveJsonLines, type JsonLinesServer } from '../../lib/ipc/json-lines-rpc.ts'
import { listenForGroup } from '../../lib/ipc/unix-socket.ts'
import { errorAnswerOf, parseEpoch, performUnary } from './answers.ts'
import type { EngineServerOptions } from './server-options.ts'
import {
  RPC_MAX_BYTES,
  rpcRequestSchema,
  rpcSocketOf,
  type RpcRequest,
  type RpcResponse,
} from './rpc-protocol.ts'

/** One server, and earlier ones that have not ended yet. */
const MAX_CONNECTIONS = 64
/** The most calls in progress of one server: more than there can be machines. */
const MAX_CALLS = 65_536
const UNREAD_BYTES = 16 * 1024 * 1024

export type QuickCalls = {
  take: (socket: Socket) => void
  /** Answers the calls in progress, and then ends their connections. */
  end: () => void
}

export function createQuickCalls(options: EngineServerOptions): QuickCalls {
  const callers = new Set<JsonLinesServer>()
  const take = (socket: Socket) => {
    const caller = serveJsonLines(socket, {
      mostBytes: RPC_MAX_BYTES,
      mostUnreadBytes: UNREAD_BYTES,
      mostCalls: MAX_CALLS,
      answer: (line) => {
        const question = parseLine(rpcRequestSchema, line)
        return question && answerTo(options, question)
      },
    })
    callers.add(caller)
    socket.once('close', () => callers.delete(caller))
    socket.on('error', (error) => options.log.debug({ error: error.message }, 'low-latency connection lost'))
  }
  return {
    take,
    end: () => {
      for (const caller of callers) caller.end()
    },
  }
}

/** Closing first answers the calls in progress. */
export async function listenForQuickCalls(
  calls: QuickCalls,
  { socketPath, socketGid }: Pick<EngineServerOptions, 'socketPath' | 'socketGid'>,
): Promise<{ close(): Promise<void> }> {
  const server = createServer(calls.take)
  server.maxConnections = MAX_CONNECTIONS
  const listening = await listenForGroup(server, rpcSocketOf(socketPath), socketGid)
  return { close: async () => await listening.close(calls.end) }
}

/** Never rejects. */
async function answerTo(
  { engine, epochs, log }: EngineServerOptions,
  { id, epoch, operation, request }: RpcRequest,
): Promise<RpcResponse> {
  try {
    await epochs.admit(parseEpoch(epoch))
    return { id, answer: await performUnary(engine, operation, request) }
  } catch (error) {
    return { id, ...errorAnswerOf(error, operation, log) }
  }
}
