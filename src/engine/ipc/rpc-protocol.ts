// The low-latency calls of the engine (rpc-server.ts): which they are, and their lines.

import { z } from 'zod'
import { answerLine, callLine, failureLine, type ReplyLine } from '../../lib/ipc/call-lines.ts'
import { SMALL } from './fields.ts'
import type { UnaryOperation } from './protocol.ts'

/**
 * Unary operations of wakes and creates, for which the round trip counts. They use JSON lines on a
 * socket of their own: a request with the epoch of its server, and its answer. A start with large boot files goes over HTTP.
 */
export const rpcOperations = [
  'capabilities',
  'capacity',
  'create',
  'start',
  'freeze',
  'thaw',
] as const satisfies UnaryOperation[]
export type RpcOperation = (typeof rpcOperations)[number]
export const rpcSocketOf = (socketPath: string) => `${socketPath.replace(/\.sock$/, '')}.quick`
/** The longest line. */
export const RPC_MAX_BYTES = SMALL

export const rpcRequestSchema = callLine.extend({ epoch: z.unknown(), operation: z.enum(rpcOperations) })
export type RpcRequest = z.infer<typeof rpcRequestSchema>
export const rpcResponseSchema = z.union([answerLine, failureLine])
export type RpcResponse = ReplyLine
