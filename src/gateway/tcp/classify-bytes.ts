// What a piece of a connection's bytes is to its unit: a question, which somebody waits for the answer to; a word, which
// is use and no more; or nothing, as the pings are by which programs find out whether a connection is still there.
// Where a protocol's frames tell pings from the rest, they are followed on both sides, and while a unit stands still its
// visitor's pings can be answered for it.

import type { Clock } from '../../lib/clock.ts'
import { listenToAmqp } from './pings/amqp.ts'
import { listenToHttp2 } from './pings/http2.ts'
import type { Tcp } from './protocol-errors.ts'

export type BytesClass = 'nothing' | 'word' | 'question'
/** Follows one side of one connection, piece by piece. */
export type Classifier = (piece: Buffer) => BytesClass

export type Listening = {
  toVisitor: Classifier
  toUnit: Classifier
  /**
   * For a visitor whose unit stands still: what it is due to hear of it, or null. Never within something that the unit has
   * begun to say.
   */
  keepAlive: () => Buffer | null
}

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

// MySQL: a statement is closed without a word.

const CLOSE_STATEMENT = 0x19
const CLOSE_BYTES = 9

function isClose(piece: Buffer): boolean {
  if (piece.length === 0 || piece.length % CLOSE_BYTES !== 0) return false
  for (let at = 0; at < piece.length; at += CLOSE_BYTES)
    if (piece.readUInt32LE(at) !== 5 || piece[at + 4] !== CLOSE_STATEMENT) return false
  return true
}
