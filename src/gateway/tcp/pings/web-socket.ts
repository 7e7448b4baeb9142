// WebSockets (RFC 6455, 5.2): a frame has a type and a length of one, three or nine bytes, and a visitor's frames
// have four bytes of mask. Bytes that do not fit are not WebSocket frames, and all count as use.

import type { Listening, BytesClass } from '../../sessions/bytes-class.ts'
import { MAX_HEAD_BYTES, readerOfFrames } from '../frames.ts'

const PING = 9
const PONG = 10
const FINAL = 0x80
/** The first reserved bit means compression; the others have no meaning yet. */
const RESERVED = 0x30
const MASKED = 0x80
const MASK_BYTES = 4
const MAX_CONTROL_BYTES = 125

export function listenToWebSocket(): Listening {
  /** The last ping, and its length while it is unanswered, else 0. */
  const ping = Buffer.alloc(MAX_HEAD_BYTES)
  let owedBytes = 0
  const visitor = readerOfFrames(framesOf({ masked: true }), (head) => {
    if (kindOf(head) === PING) owedBytes = head.copy(ping)
    return saidBy(head)
  })
  const unit = readerOfFrames(framesOf({ masked: false }), (head) => {
    if (kindOf(head) === PONG) owedBytes = 0
    return saidBy(head)
  })
  return {
    toVisitor: visitor.hear,
    toUnit: unit.hear,
    keepAlive: () => {
      if (owedBytes === 0 || !unit.isBetween()) return null
      const said = saidIn(ping.subarray(0, owedBytes))
      owedBytes = 0
      return Buffer.concat([Buffer.from([FINAL | PONG, said.length]), said])
    },
  }
}

const kindOf = (head: Buffer) => head.readUInt8(0) & 0x0f
const lengthIn = (head: Buffer) => head.readUInt8(1) & 0x7f
const isControl = (head: Buffer) => kindOf(head) >= 8
/** The bytes before the payload; a ping's payload belongs to the head too. */
const bytesBefore = (head: Buffer) => {
  const length = lengthIn(head)
  const lengthBytes = length === 127 ? 8 : length === 126 ? 2 : 0
  return 2 + lengthBytes + ((head.readUInt8(1) & MASKED) === 0 ? 0 : MASK_BYTES)
}
const isWholePing = (head: Buffer) => kindOf(head) === PING && lengthIn(head) <= MAX_CONTROL_BYTES

function framesOf({ masked }: { masked: boolean }) {
  return {
    skip: 0,
    headBytes: (head: Buffer) => bytesBefore(head) + (isWholePing(head) ? lengthIn(head) : 0),
    lengthOf: (head: Buffer) => {
      const flags = head.readUInt8(0)
      const length = lengthIn(head)
      const isMasked = (head.readUInt8(1) & MASKED) !== 0
      if (isMasked !== masked || (flags & RESERVED) !== 0) return Infinity
      if (isControl(head) && ((flags & FINAL) === 0 || length > MAX_CONTROL_BYTES)) return Infinity
      if (length === 126) return bytesBefore(head) + head.readUInt16BE(2)
      if (length === 127) return bytesBefore(head) + Number(head.readBigUInt64BE(2))
      return bytesBefore(head) + length
    },
  }
}

function saidBy(head: Buffer): BytesClass {
  const kind = kindOf(head)
  return kind === PING || kind === PONG ? 'nothing' : 'word'
}

function saidIn(ping: Buffer): Buffer {
  const at = bytesBefore(ping)
  const mask = ping.subarray(at - MASK_BYTES, at)
  return Buffer.from(ping.subarray(at).map((byte, index) => byte ^ (mask[index % MASK_BYTES] ?? 0)))
}
