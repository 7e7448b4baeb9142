// Tells an AMQP client why its unit is unavailable. A server can only close an open connection with a reason, so the
// handshake is completed first. Of the client's messages only the handshake is parsed.

import { once } from 'node:events'
import type { TLSSocket } from 'node:tls'

const METHOD = 1
const FRAME_END = 0xce
const HEAD_BYTES = 7
const MAX_BYTES = 64 * 1024
/** CONNECTION_FORCED: an operator intervened. */
const FORCED = 320

const START_OK = '10.11'
const OPEN = '10.40'
const CLOSE_OK = '10.51'

/** Resolves once the client has the message, disconnects, or sends too much. The caller sets the timeout. */
export async function refuseAmqp(socket: TLSSocket, words: string): Promise<void> {
  if (socket.destroyed) return
  let said = Buffer.alloc(0)
  let heardBytes = 0
  const hear = (chunk: Buffer) => {
    heardBytes += chunk.length
    said = Buffer.concat([said, chunk])
    for (let frame = firstFrame(said); frame !== null; frame = firstFrame(said)) {
      said = said.subarray(frame.length)
      if (methodOf(frame) === START_OK) socket.write(tune)
      if (methodOf(frame) === OPEN) socket.write(close(words))
      if (methodOf(frame) === CLOSE_OK) socket.end()
    }
    if (heardBytes > MAX_BYTES) socket.destroy()
  }
  socket.on('data', hear)
  socket.write(start)
  socket.once('end', () => socket.end())
  await once(socket, 'close').catch(() => {})
}

function firstFrame(bytes: Buffer): Buffer | null {
  if (bytes.length < HEAD_BYTES) return null
  const length = HEAD_BYTES + bytes.readUInt32BE(3) + 1
  return bytes.length < length ? null : bytes.subarray(0, length)
}

function methodOf(frame: Buffer): string | null {
  if (frame[0] !== METHOD || frame.length < HEAD_BYTES + 5) return null
  return `${frame.readUInt16BE(HEAD_BYTES)}.${frame.readUInt16BE(HEAD_BYTES + 2)}`
}

function method(family: number, number: number, ...fields: Buffer[]): Buffer {
  const payload = Buffer.concat([short(family), short(number), ...fields])
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt8(METHOD, 0)
  head.writeUInt32BE(payload.length, 3)
  return Buffer.concat([head, payload, Buffer.from([FRAME_END])])
}

function short(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}

function long(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

const longText = (text: string) => Buffer.concat([long(Buffer.byteLength(text)), Buffer.from(text)])

function shortText(text: string): Buffer {
  const bytes = Buffer.from(text).subarray(0, 255)
  return Buffer.concat([Buffer.from([bytes.length]), bytes])
}

/** Version 0.9.1, no properties, and the capabilities that every client has. */
const start = method(
  10,
  10,
  Buffer.from([0, 9]),
  long(0),
  longText('PLAIN AMQPLAIN EXTERNAL'),
  longText('en_US'),
)
/** Channels, the longest frame, and no heartbeats. */
const tune = method(10, 30, short(0), long(131_072), short(0))
const close = (words: string) => method(10, 50, short(FORCED), shortText(words), short(0), short(0))
