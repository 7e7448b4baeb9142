// Tells a gRPC client why its unit is unavailable: every call of its connection ends with UNAVAILABLE, which programs
// treat as temporary.

import { once } from 'node:events'
import { createServer } from 'node:http2'
import type { TLSSocket } from 'node:tls'

const UNAVAILABLE = '14'
const MAX_CALLS = 16

/** `first`: the bytes the client has sent. Resolves once the connection is closed; the caller sets the timeout. */
export async function refuseGrpc(socket: TLSSocket, first: Buffer, words: string): Promise<void> {
  if (socket.destroyed) return
  const server = createServer({ settings: { maxConcurrentStreams: MAX_CALLS } })
  server.on('session', (session) => session.on('error', () => session.destroy()))
  server.on('stream', (stream) => {
    stream.on('error', () => stream.destroy())
    const said = { 'grpc-status': UNAVAILABLE, 'grpc-message': percentEncoded(words) }
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...said }, { endStream: true })
    stream.session?.close()
  })
  const closed = once(socket, 'close').catch(() => {})
  socket.unshift(first)
  server.emit('connection', socket)
  await closed
}

/** Encoded as gRPC requires in a header. */
function percentEncoded(words: string): string {
  return words.replace(/[^\x20-\x24\x26-\x7e]/g, (other) => encodeURIComponent(other))
}
