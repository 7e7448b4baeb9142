// A streamed response of bytes: a client that reads slowly holds the producer back, and a client that disconnects
// ends it. After the first byte, a failure can only close the connection, and the client sees an incomplete
// response.

import type { ServerResponse } from 'node:http'
import { callerGone } from './errors.ts'
import { whenWritable } from './sse.ts'

export type ByteStream = {
  contentType: string
  sendBytes: (send: (data: Buffer) => Promise<void>) => Promise<void>
}

export function byteStream(contentType: string, sendBytes: ByteStream['sendBytes']): ByteStream {
  return { contentType, sendBytes }
}

export function isByteStream(value: unknown): value is ByteStream {
  return typeof value === 'object' && value !== null && 'sendBytes' in value
}

/** Throws what the stream threw, or the signal's reason: before the first byte for the caller of this to answer. */
export async function sendByteStream(
  response: ServerResponse,
  stream: ByteStream,
  signal: AbortSignal,
): Promise<void> {
  try {
    await stream.sendBytes(async (data) => {
      signal.throwIfAborted()
      if (response.destroyed) throw callerGone()
      openByteStream(response, stream)
      if (!response.write(data)) await whenWritable(response, signal)
    })
    signal.throwIfAborted()
    openByteStream(response, stream).end()
  } catch (error) {
    if (response.headersSent) response.destroy()
    throw signal.aborted ? signal.reason : error
  }
}

/** The head of an answer that nothing has been sent of. */
export function openByteStream(response: ServerResponse, { contentType }: ByteStream): ServerResponse {
  if (!response.headersSent)
    response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-store' })
  return response
}
