// HTTP/1.1 requests whose path is in UTF-8 and not percent-encoded, as `curl $URL/café` sends it. Node's parser refuses
// such a line. Then its path is encoded here, and a new parser reads the same connection again from that line on.
//
// Both parsers see the same request line: the first one refused a byte within the target, so the only space before it
// is the one that follows the method, and no method that Node knows ends with the name of another one of these. The
// connection serves no further request.

import type { Server } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { percentEncode } from './request-head.ts'

/** Whether responses to earlier requests on the connection are in progress. */
export const isAnswering = (socket: Duplex) => Boolean(Reflect.get(socket, '_httpMessage'))

type ParseError = NodeJS.ErrnoException & { rawPacket?: Buffer; bytesParsed?: number }

/** What stands before the byte that was refused. */
const LINE_SO_FAR = /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (?:\/|https?:\/\/)[\x21-\x7e]*$/i
const LINE_FEED = 0x0a

export type RawPaths = {
  /** Returns false if the connection is to be refused. */
  take(error: ParseError, socket: Duplex): boolean
  /** Whether the server is given this connection for the second time. */
  isTaken(socket: Duplex): boolean
}

export function createRawPaths(server: Server, { headerBytes }: { headerBytes: number }): RawPaths {
  /** Whether its request has come. */
  const taken = new WeakMap<Duplex, { isServed: boolean }>()
  const serve = (socket: Socket, response?: { shouldKeepAlive: boolean }) => {
    const of = taken.get(socket)
    if (!of) return
    of.isServed = true
    if (response) response.shouldKeepAlive = false
  }
  server.on('request', ({ socket }, response) => serve(socket, response))
  server.on('checkContinue', ({ socket }, response) => serve(socket, response))
  server.on('upgrade', ({ socket }) => serve(socket))

  return {
    isTaken: (socket) => taken.has(socket),
    take(error, socket) {
      // The first parser waits for the rest of the head, which the second one has.
      if (taken.get(socket)?.isServed && error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return true
      const from = lineStartOf(error)
      // While an earlier request is answered, nothing can be read again.
      if (from === null || taken.has(socket) || isAnswering(socket) || !(socket instanceof Socket))
        return false
      taken.set(socket, { isServed: false })
      const again = (bytes: Buffer) => {
        socket.unshift(bytes)
        server.emit('connection', socket)
        socket.resume()
      }
      collectLine(socket, from, headerBytes, again)
      return true
    },
  }
}

/** Returns the bytes from the start of the request line on; null if the error is another one. */
function lineStartOf({ code, rawPacket, bytesParsed }: ParseError): Buffer | null {
  if (code !== 'HPE_INVALID_URL' || !rawPacket || bytesParsed === undefined) return null
  if ((rawPacket[bytesParsed] ?? 0) < 0x80) return null
  const start = rawPacket.lastIndexOf(LINE_FEED, bytesParsed) + 1
  return LINE_SO_FAR.test(rawPacket.toString('latin1', start, bytesParsed)) ? rawPacket.subarray(start) : null
}

/** Calls back once the line is whole, which is when the first parser reads no more. */
function collectLine(socket: Socket, first: Buffer, maxBytes: number, done: (bytes: Buffer) => void): void {
  let bytes = first
  const look = (chunk?: Buffer) => {
    if (chunk) bytes = Buffer.concat([bytes, chunk])
    const end = bytes.indexOf(LINE_FEED)
    if (end < 0 && bytes.length <= maxBytes) return
    socket.off('data', look)
    socket.pause()
    // Without its end the line is too long, which the second parser says.
    const line = Buffer.from(
      percentEncode(bytes.toString('latin1', 0, end < 0 ? bytes.length : end)),
      'latin1',
    )
    done(end < 0 ? line : Buffer.concat([line, bytes.subarray(end)]))
  }
  socket.removeAllListeners('data')
  socket.on('data', look)
  setImmediate(look)
}
