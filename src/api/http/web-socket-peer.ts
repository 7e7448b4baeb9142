// The client of a WebSocket, which cannot flood this process: it is read no further while its messages wait to be taken,
// and each message to it waits until the one before is with the kernel. Browsers read whatever comes, so a client may ask for
// a pause: `{"pause":true}`, and `{"pause":false}` to go on.

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
  let flowing = Promise.resolve()
  let flow = () => {}
  const wake = () => {
    changed.resolve()
    changed = Promise.withResolvers<void>()
  }
  const end = () => {
    isOver = true
    flow()
    wake()
  }
  client.on('message', (raw: RawData, isBinary: boolean) => {
    const data = Array.isArray(raw) ? Buffer.concat(raw) : Buffer.from(raw as Buffer)
    const pause = isBinary ? null : pauseOf(data)
    if (pause !== null) {
      flow()
      if (pause && !isOver) ({ promise: flowing, resolve: flow } = Promise.withResolvers<void>())
      return
    }
    waiting.push({ isText: !isBinary, data })
    bytes += data.length
    if (bytes > WAITING_BYTES) {
      client.pause()
      // Its wish to go on could not be read any more.
      flow()
    }
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
    sendBinary: async (data) => {
      await flowing
      await send(data)
    },
    sendJson: async (value) => await send(JSON.stringify(value)),
    end,
  }
}

/** Returns null for a message about something else. */
function pauseOf(data: Buffer): boolean | null {
  const text = data.length > 20 ? '' : data.toString('latin1').replaceAll(/\s/g, '')
  return text === '{"pause":true}' ? true : text === '{"pause":false}' ? false : null
}
