// The client of a WebSocket, which cannot flood this process: it is read no further while its messages wait to be taken,
// and each message to it waits until the one before is with the kernel.

import type { RawData, WebSocket } from 'ws'
import { callerGone } from './errors.ts'
import type { WebSocketMessage, WebSocketPeer } from './web-socket-answer.ts'

/** How much may wait to be taken before reading stops. One message may be longer. */
const WAITING_BYTES = 256 * 1024

export function openPeer(client: WebSocket): WebSocketPeer & { end: () => void } {
  const waiting: WebSocketMessage[] = []
  let bytes = 0
  let isOver = false
  let changed = Promise.withResolvers<void>()
  const wake = () => {
    changed.resolve()
    changed = Promise.withResolvers<void>()
  }
  const end = () => {
    isOver = true
    wake()
  }
  client.on('message', (raw: RawData, isBinary: boolean) => {
    const data = Array.isArray(raw) ? Buffer.concat(raw) : Buffer.from(raw as Buffer)
    waiting.push({ isText: !isBinary, data })
    bytes += data.length
    if (bytes > WAITING_BYTES) client.pause()
    wake()
  })
  client.once('close', end)
  // A connection that breaks is closed as well.
  client.on('error', () => {})

  async function* messages(): AsyncGenerator<WebSocketMessage> {
    for (;;) {
      const message = waiting.shift()
      if (message) {
        bytes -= message.data.length
        if (bytes <= WAITING_BYTES && client.isPaused) client.resume()
        yield message
      } else if (isOver) return
      else await changed.promise
    }
  }
  const send = async (data: Buffer | string) =>
    await new Promise<void>((resolve, reject) => {
      client.send(data, { binary: typeof data !== 'string' }, (error) =>
        error ? reject(callerGone()) : resolve(),
      )
    })
  return {
    messages: messages(),
    sendBinary: send,
    sendJson: async (value) => await send(JSON.stringify(value)),
    end,
  }
}
