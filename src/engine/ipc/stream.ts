// One streamed answer of the engine's socket: sends frames with backpressure, and an empty frame now and then so that
// the client knows that the engine is alive.

import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { encodeFrame, type FrameType } from './frames.ts'
import { KEEP_ALIVE_MS } from './protocol.ts'

/** Made once: each answer ends with it, since a reader goes when it has all of it. */
const READER_GONE = new Error('the reader is gone')

/** How much may be buffered for a reader that is not awaited. */
const PUSHED_BYTES = 4 * 1024 * 1024

export type FrameStream = {
  /** Aborts when the reader disconnects or the engine is closing. */
  gone: AbortSignal
  /** Resolves when there is room for more; rejects once the reader has disconnected. */
  write(type: FrameType, data: Buffer | string): Promise<void>
  /** Writes without waiting; a reader that is too far behind is disconnected. */
  push(type: FrameType, data: string): void
  end(): void
}

export function openFrameStream(response: ServerResponse, closing: AbortSignal): FrameStream {
  const left = new AbortController()
  response.once('close', () => left.abort(READER_GONE))
  const gone = AbortSignal.any([left.signal, closing])
  response.writeHead(200, { 'content-type': 'application/octet-stream' })
  response.flushHeaders()

  // One write per frame: a response that was corked and flushed at once never emits `drain` (Node 24).
  const put = (type: FrameType, data: Buffer | string): boolean => response.write(encodeFrame(type, data))
  const keepAlive = setInterval(() => {
    if (!response.writableNeedDrain) put('keepAlive', '')
  }, KEEP_ALIVE_MS)
  response.once('close', () => clearInterval(keepAlive))

  return {
    gone,
    write: async (type, data) => {
      gone.throwIfAborted()
      if (!put(type, data)) await once(response, 'drain', { signal: gone })
    },
    push: (type, data) => {
      if (gone.aborted) return
      put(type, data)
      if (response.writableLength > PUSHED_BYTES) response.destroy()
    },
    end: () => {
      clearInterval(keepAlive)
      // A stream cut short by closing must not look complete to its reader.
      if (closing.aborted) response.destroy()
      else response.end()
    },
  }
}
