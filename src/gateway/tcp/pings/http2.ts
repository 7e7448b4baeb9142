// HTTP/2, which gRPC uses: a frame has a length, type, flags and stream.

import type { Listening, BytesClass } from '../../sessions/bytes-class.ts'
import { readerOfFrames } from '../frames.ts'

const GREETING_BYTES = 24
const HEAD_BYTES = 9
const PING = 6
const PING_BYTES = 8
const ACK = 1

/** DATA, HEADERS and CONTINUATION. */
const contents = new Set([0, 1, 9])
/** PRIORITY, SETTINGS and PING. */
const housekeeping = new Set([2, 4, 6])
/** HEADERS, PUSH_PROMISE and CONTINUATION, which must not be interrupted. */
const headers = new Set([1, 5, 9])
const END_HEADERS = 4

export function listenToHttp2(): Listening {
  /** The payload of the last ping. */
  const said = Buffer.alloc(PING_BYTES)
  let isOwed = false
  let isWithinHeaders = true
  const visitor = readerOfFrames({ skip: GREETING_BYTES, ...http2 }, (head) => {
    if (isPing(head) && !isAnswer(head)) isOwed = head.copy(said, 0, HEAD_BYTES) > 0
    return saidBy(head, 'question')
  })
  const unit = readerOfFrames({ skip: 0, ...http2 }, (head) => {
    if (isPing(head) && isAnswer(head)) isOwed = false
    const kind = head.readUInt8(3)
    isWithinHeaders = headers.has(kind) && (head.readUInt8(4) & END_HEADERS) === 0
    return saidBy(head, 'word')
  })
  return {
    toVisitor: visitor.hear,
    toUnit: unit.hear,
    keepAlive: () => {
      if (!isOwed || isWithinHeaders || !unit.isBetween()) return null
      isOwed = false
      return Buffer.concat([Buffer.from([0, 0, PING_BYTES, PING, ACK, 0, 0, 0, 0]), said])
    },
  }
}

const lengthIn = (head: Buffer) => head.readUIntBE(0, 3)
const isPing = (head: Buffer) => head.readUInt8(3) === PING
const isAnswer = (head: Buffer) => (head.readUInt8(4) & ACK) !== 0

const http2 = {
  headBytes: (head: Buffer) => HEAD_BYTES + (isPing(head) && lengthIn(head) === PING_BYTES ? PING_BYTES : 0),
  lengthOf: (head: Buffer) => {
    if (isPing(head) && lengthIn(head) !== PING_BYTES) return Infinity
    return HEAD_BYTES + lengthIn(head)
  },
}

function saidBy(head: Buffer, content: BytesClass): BytesClass {
  const kind = head.readUInt8(3)
  if (contents.has(kind)) return content
  return housekeeping.has(kind) ? 'nothing' : 'word'
}
