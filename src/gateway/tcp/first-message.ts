// Checks a client's first message: no unit is woken before the client has sent something in its endpoint's protocol
// (reliability S33). Pure. Nothing more is parsed: the rest is between the client and its unit.

import type { Protocol } from '../../contract/endpoint.ts'
import { readStartup } from './postgres/messages.ts'

/**
 * `more`: valid so far. `only`: all that this connection will send (postgres cancels a query on a second connection).
 */
export type FirstMessage = 'more' | 'whole' | 'only' | 'wrong'

/** The protocols in which the client speaks first after the TLS handshake. */
export type ClientFirstProtocol = Exclude<Protocol, 'http' | 'mysql'>

/** More than any of them needs to be recognized. */
export const MAX_FIRST_BYTES = 16 * 1024

export function readFirstMessage(protocol: ClientFirstProtocol, bytes: Buffer): FirstMessage {
  const read = readers[protocol](bytes)
  return read === 'more' && bytes.length >= MAX_FIRST_BYTES ? 'wrong' : read
}

const readers = {
  postgres: readStartup,
  redis: readRedis,
  mongodb: readMongo,
  amqp: (bytes) => startsLike(bytes, Buffer.from('AMQP'), 8),
  // A browser reaches Bolt through a WebSocket on the same port.
  bolt: (bytes) =>
    bytes[0] === 0x47 ? readUpgrade(bytes) : startsLike(bytes, Buffer.from([0x60, 0x60, 0xb0, 0x17]), 20),
  grpc: (bytes) => startsLike(bytes, Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), 24),
} satisfies Record<ClientFirstProtocol, (bytes: Buffer) => FirstMessage>

function startsLike(bytes: Buffer, start: Buffer, length: number): FirstMessage {
  const shared = Math.min(bytes.length, start.length)
  if (!bytes.subarray(0, shared).equals(start.subarray(0, shared))) return 'wrong'
  return bytes.length < length ? 'more' : 'whole'
}

/** A command as clients send it, an array of strings, or typed by a person; not an HTTP request. */
function readRedis(bytes: Buffer): FirstMessage {
  const end = bytes.indexOf('\n')
  const line = bytes.subarray(0, end < 0 ? bytes.length : end).toString('latin1')
  if (end < 0) return /^(?:\*\d{0,7}\r?|[a-z][\x20-\x7e]*\r?)?$/i.test(line) ? 'more' : 'wrong'
  const isCommand = /^\*[1-9]\d{0,6}\r$/.test(line) || /^[a-z][\x20-\x7e]*\r?$/i.test(line)
  return isCommand && !/ HTTP\/\d/.test(line) ? 'whole' : 'wrong'
}

const MONGO_HEADER = 16
const MAX_MONGO_BYTES = 48_000_000
/** OP_QUERY, which starts the handshake; OP_COMPRESSED; OP_MSG. */
const mongoOperations = [2004, 2012, 2013]

function readMongo(bytes: Buffer): FirstMessage {
  if (bytes.length < MONGO_HEADER) return 'more'
  const length = bytes.readInt32LE(0)
  const isMessage = length > MONGO_HEADER && length <= MAX_MONGO_BYTES
  return isMessage && mongoOperations.includes(bytes.readInt32LE(12)) ? 'whole' : 'wrong'
}

function readUpgrade(bytes: Buffer): FirstMessage {
  const text = bytes.toString('latin1')
  if (!text.includes('\r\n\r\n')) return 'more'
  return /^GET \S+ HTTP\/1\.1\r\n/.test(text) && /\r\nupgrade: *websocket\r\n/i.test(text) ? 'whole' : 'wrong'
}
