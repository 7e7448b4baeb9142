// A client of GET /v1/units/{id}/exec, by the library `ws`.

import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import { text as readText } from 'node:stream/consumers'

export type Terminal = {
  socket: WebSocket
  headers: IncomingMessage['headers']
  type(text: string): void
  sendJson(value: unknown): void
  /** What has come on standard output, or on another stream. */
  printed(stream?: 1 | 2): string
  /** The messages of text. */
  told(): unknown[]
  /** Resolves with the code of the close. */
  closed: Promise<number>
}

export type Refusal = { status: number; headers: IncomingMessage['headers']; body: unknown }

type Options = { headers?: Record<string, string>; protocols?: string[] }

/** Returns the open terminal, or the answer that came in its place. */
export async function openTerminal(
  url: string,
  { headers = {}, protocols = [] }: Options = {},
): Promise<Terminal | Refusal> {
  const socket = new WebSocket(url.replace('http', 'ws'), protocols, { headers })
  const output = { 1: '', 2: '' }
  const told: unknown[] = []
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) output[data[0] === 2 ? 2 : 1] += data.subarray(1).toString()
    else told.push(JSON.parse(data.toString()))
  })
  const closed = new Promise<number>((resolve) => socket.once('close', resolve))
  const answered = Promise.withResolvers<Terminal | Refusal>()
  socket.once('upgrade', ({ headers: sent }) => {
    socket.once('open', () =>
      answered.resolve({
        socket,
        headers: sent,
        type: (text) => socket.send(Buffer.concat([Buffer.from([0]), Buffer.from(text)])),
        sendJson: (value) => socket.send(JSON.stringify(value)),
        printed: (stream = 1) => output[stream],
        told: () => told,
        closed,
      }),
    )
  })
  socket.once('unexpected-response', (_request, response) => {
    const { statusCode: status = 0, headers: sent } = response
    readText(response).then(
      (text) => answered.resolve({ status, headers: sent, body: JSON.parse(text) }),
      answered.reject,
    )
  })
  socket.on('error', answered.reject)
  return await answered.promise
}

/** Throws if it was refused. */
export async function openedTerminal(url: string, options?: Options): Promise<Terminal> {
  const answer = await openTerminal(url, options)
  if (!('socket' in answer)) throw new Error(`refused: ${JSON.stringify(answer)}`)
  return answer
}
