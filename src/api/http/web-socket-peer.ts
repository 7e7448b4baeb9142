// The client of a WebSocket. It cannot flood this process: its socket is read no further while its messages wait to
// be processed, and each message to it waits until the kernel has taken the previous one. Browsers read without
// limit, so a client may request a pause: `{"pause":true}`, and `{"pause":false}` to continue.

import type { RawData, WebSocket } from 'ws'
import { createByteQueue } from '../../lib/concurrency/byte-queue.ts'
import { callerGone } from './errors.ts'
import type { WebSocketMessage, WebSocketPeer } from './web-socket-answer.ts'

/** How much may wait to be taken before reading stops. One message may be longer. */
const WAITING_BYTES = 256 * 1024

export function openPeer(client: WebSocket): WebSocketPeer & { end: () => void } {
  const messages = createByteQueue<WebSocketMessage>(WAITING_BYTES, ({ data }) => data.length)
  let isOver = false
  let flowing = Promise.resolve()
  let flow = () => {}
  const end = () => {
    isOver = true
    flow()
    messages.end()
  }
  client.on('message', (raw: RawData, isBinary: boolean) => {
    const data = Array.isArray(raw) ? Buffer.concat(raw) : Buffer.from(raw as Buffer)
    const pause = isBinary ? null : pauseOf(data)
    if (pause !== null) {
      flow()
      if (pause && !isOver) ({ promise: flowing, resolve: flow } = Promise.withResolvers<void>())
      return
    }
    const taken = messages.push({ isText: !isBinary, data })
    if (!messages.isFull() || client.isPaused) return
    client.pause()
    // Its request to continue could not be read any more.
    flow()
    void taken.then(() => client.resume())
  })
  client.once('close', end)
  // A connection that breaks is closed as well.
  client.on('error', () => {})

  const send = async (data: Buffer | string) =>
    await new Promise<void>((resolve, reject) => {
      client.send(data, { binary: typeof data !== 'string' }, (error) =>
        error ? reject(callerGone()) : resolve(),
      )
    })
  return {
    messages,
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
