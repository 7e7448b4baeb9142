// A WebSocket as a line that neither side can flood: it is read no further while frames wait to be taken, and each sending
// waits for the one before.

import type { RawData, WebSocket } from 'ws'
import { callerGone } from './errors.ts'
import type { ConversationFrame, Line } from './conversation.ts'

/** How much may wait to be taken before reading stops; one frame may be longer. */
const WAITING_BYTES = 256 * 1024

export function openLine(client: WebSocket): Line & { end: () => void } {
  const waiting: ConversationFrame[] = []
  let bytes = 0
  let isOver = false
  let changed = Promise.withResolvers<void>()
  const tell = () => {
    changed.resolve()
    changed = Promise.withResolvers<void>()
  }
  const end = () => {
    isOver = true
    tell()
  }
  client.on('message', (raw: RawData, isBinary: boolean) => {
    const data = Array.isArray(raw) ? Buffer.concat(raw) : Buffer.from(raw as Buffer)
    waiting.push({ isText: !isBinary, data })
    bytes += data.length
    if (bytes > WAITING_BYTES) client.pause()
    tell()
  })
  client.once('close', end)
  // What breaks a connection also closes it.
  client.on('error', () => {})

  async function* frames(): AsyncGenerator<ConversationFrame> {
    for (;;) {
      const frame = waiting.shift()
      if (frame) {
        bytes -= frame.data.length
        if (bytes <= WAITING_BYTES && client.isPaused) client.resume()
        yield frame
      } else if (isOver) return
      else await changed.promise
    }
  }
  const send = async (data: Buffer | string) =>
    await new Promise<void>((resolve, reject) =>
      client.send(data, { binary: typeof data !== 'string' }, (error) =>
        error ? reject(callerGone()) : resolve(),
      ),
    )
  return {
    frames: frames(),
    sendBytes: send,
    sendText: async (value) => await send(JSON.stringify(value)),
    end,
  }
}
