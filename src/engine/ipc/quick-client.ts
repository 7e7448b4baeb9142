// The server's side of quick calls (quick-server.ts): one connection, which is opened anew by the first call after
// it broke.

import { connect } from 'node:net'
import { type LineCalls, openLineCalls } from '../../lib/ipc/json-lines-rpc.ts'
import {
  QUICK_BYTES,
  type QuickAnswer,
  quickAnswerSchema,
  type QuickOperation,
  type QuickQuestion,
} from './protocol.ts'
import { awayError, engineErrorIn, silenceError } from './errors.ts'

/** The answer as it travels; rejects with an EngineError. */
export type QuickCall = (operation: QuickOperation, request: unknown, deadlineMs: number) => Promise<unknown>

type Asked = Omit<QuickQuestion, 'id'>

export function connectQuickly({ socketPath, epoch }: { socketPath: string; epoch: number }): QuickCall {
  let connection: LineCalls<Asked, QuickAnswer> | null = null
  const connected = () => {
    if (!connection || connection.isOver()) connection = openConnection(socketPath)
    return connection
  }

  return async (operation, request, deadlineMs) => {
    const answer = await connected().call({ epoch, operation, request }, deadlineMs)
    if ('error' in answer) throw engineErrorIn(answer)
    return answer.answer
  }
}

function openConnection(socketPath: string): LineCalls<Asked, QuickAnswer> {
  const socket = connect(socketPath)
  // As with HTTP's idle connections: only calls in flight keep a process from its end.
  socket.unref()
  return openLineCalls(socket, {
    mostBytes: QUICK_BYTES,
    hear: (line) => quickAnswerSchema.parse(JSON.parse(line)),
    late: ({ operation }: Asked) => silenceError(operation),
    over: awayError,
  })
}
