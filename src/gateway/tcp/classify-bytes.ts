// Classifies the bytes of a connection: a request, which the visitor expects an answer to; other data, which only
// counts as use; or keepalives (pings), which count as nothing. If the frames of a protocol tell pings from the rest,
// both sides are parsed, and while a unit is frozen the gateway can answer its visitor's pings.

import type { Clock } from '../../lib/clock.ts'
import type { Listening } from '../sessions/bytes-class.ts'
import { listenToAmqp } from './pings/amqp.ts'
import { listenToHttp2 } from './pings/http2.ts'
import type { Tcp } from './protocol-errors.ts'

export function listenTo(protocol: Tcp, clock: Clock): Listening {
  switch (protocol) {
    case 'amqp':
      return listenToAmqp(clock)
    case 'grpc':
      return listenToHttp2()
    case 'mysql':
      return { ...withoutPings, toVisitor: (piece) => (isClose(piece) ? 'word' : 'question') }
    default:
      return withoutPings
  }
}

const withoutPings: Listening = {
  toVisitor: () => 'question',
  toUnit: () => 'word',
  keepAlive: () => null,
}

// MySQL: closing a statement has no response.

const CLOSE_STATEMENT = 0x19
const CLOSE_BYTES = 9

function isClose(piece: Buffer): boolean {
  if (piece.length === 0 || piece.length % CLOSE_BYTES !== 0) return false
  for (let at = 0; at < piece.length; at += CLOSE_BYTES)
    if (piece.readUInt32LE(at) !== 5 || piece[at + 4] !== CLOSE_STATEMENT) return false
  return true
}
