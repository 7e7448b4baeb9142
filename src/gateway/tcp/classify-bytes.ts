// What a piece of a connection's bytes is to its unit: a question, which somebody waits for the answer to; a word, which
// is use and no more; or nothing, as the pings are by which programs find out whether a connection is still there.

import { readerOfFrames } from './frames.ts'
import type { Tcp } from './refusals.ts'

export type Said = 'nothing' | 'word' | 'question'
/** Follows one side of one connection, piece by piece. */
export type Listen = (piece: Buffer) => Said

/** By its visitor. `skip`: what stands before the first frame. */
export function listenToVisitor(protocol: Tcp): Listen {
  switch (protocol) {
    case 'amqp':
      return readerOfFrames({ skip: 8, ...amqp }, (head) => (isPing(head) ? 'nothing' : asks(head)))
    case 'grpc':
      return readerOfFrames({ skip: 24, ...http2 }, (head) => saidByHttp2(head, 'question'))
    case 'mysql':
      return (piece) => (isClose(piece) ? 'word' : 'question')
    default:
      return () => 'question'
  }
}

/** By its unit, which answers. */
export function listenToUnit(protocol: Tcp): Listen {
  switch (protocol) {
    case 'amqp':
      return readerOfFrames({ skip: 0, ...amqp }, (head) => (isPing(head) ? 'nothing' : 'word'))
    case 'grpc':
      return readerOfFrames({ skip: 0, ...http2 }, (head) => saidByHttp2(head, 'word'))
    default:
      return () => 'word'
  }
}

// AMQP: kind, channel and length, then class and method; one byte ends it.

const AMQP_HEAD_BYTES = 7
const METHOD = 1
const HEARTBEAT = 8
const amqp = {
  headBytes: (head: Buffer) => AMQP_HEAD_BYTES + (head[0] === METHOD ? 4 : 0),
  lengthOf: (head: Buffer) => AMQP_HEAD_BYTES + head.readUInt32BE(3) + 1,
}
const isPing = (head: Buffer) => head[0] === HEARTBEAT

/** Methods of clients that are answered by nothing: publishing, acknowledging, and what ends an exchange. */
const unanswered = new Set([
  '10.31',
  '10.51',
  '10.71',
  '20.21',
  '20.41',
  '60.31',
  '60.40',
  '60.80',
  '60.90',
  '60.100',
  '60.120',
])

function asks(head: Buffer): Said {
  if (head[0] !== METHOD) return 'word'
  return unanswered.has(`${head.readUInt16BE(7)}.${head.readUInt16BE(9)}`) ? 'word' : 'question'
}

// HTTP/2, which gRPC is: length, kind, flags and stream.

const HTTP2_HEAD_BYTES = 9
const http2 = {
  headBytes: () => HTTP2_HEAD_BYTES,
  lengthOf: (head: Buffer) => HTTP2_HEAD_BYTES + head.readUIntBE(0, 3),
}
/** DATA, HEADERS and CONTINUATION. */
const contents = new Set([0, 1, 9])
/** PRIORITY, SETTINGS and PING. */
const housekeeping = new Set([2, 4, 6])

function saidByHttp2(head: Buffer, content: Said): Said {
  const kind = head.readUInt8(3)
  if (contents.has(kind)) return content
  return housekeeping.has(kind) ? 'nothing' : 'word'
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
