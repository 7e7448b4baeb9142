// AMQP. In 0.9.1 a frame has a type, channel and length, a method also a class and number, and one byte ends it. In
// 1.0 it has a length, the offset of its body, a type and channel; without a body it is a heartbeat. Each side
// announces the version first.

import { type Clock, SECOND } from '../../../lib/clock.ts'
import type { Classifier, Listening, BytesClass } from '../../sessions/bytes-class.ts'
import { type FrameReader, readerOfFrames } from '../frames.ts'

const GREETING_BYTES = 8

export function listenToAmqp(clock: Clock): Listening {
  /** The agreed interval; 0 for none. */
  let heartbeatMs = 0
  let heardMs = clock.monotonicMs()
  const noteTune = (head: Buffer) => {
    if (methodOf(head) === TUNE_OK) heartbeatMs = head.readUInt16BE(TUNE_OK_BYTES - 2) * SECOND
  }
  const visitor = chosenBy((greeting) => {
    if (greeting.length >= GREETING_BYTES && isFirstVersion(greeting)) {
      return readerOfFrames({ skip: GREETING_BYTES, ...old }, (head) => {
        noteTune(head)
        return head[0] === HEARTBEAT ? 'nothing' : asks(head)
      })
    }
    return newReader()
  })
  const unit = chosenBy((greeting) =>
    greeting[0] === LETTER_A
      ? newReader()
      : readerOfFrames({ skip: 0, ...old }, (head) => (head[0] === HEARTBEAT ? 'nothing' : 'word')),
  )
  return {
    toVisitor: visitor.hear,
    toUnit: (piece) => {
      heardMs = clock.monotonicMs()
      return unit.hear(piece)
    },
    keepAlive: () => {
      // As often as a server does: a client considers a server dead after twice the interval.
      const isDue = heartbeatMs > 0 && clock.monotonicMs() - heardMs >= heartbeatMs / 2
      if (!isDue || !unit.isBetween()) return null
      heardMs = clock.monotonicMs()
      return heartbeat
    },
  }
}

/** Chooses the version by the first piece. */
function chosenBy(choose: (first: Buffer) => FrameReader): { hear: Classifier; isBetween: () => boolean } {
  let chosen: FrameReader | null = null
  return {
    hear: (piece) => {
      if (piece.length === 0) return 'nothing'
      chosen ??= choose(piece)
      return chosen.hear(piece)
    },
    isBetween: () => chosen?.isBetween() ?? false,
  }
}

// 0.9.1

const METHOD = 1
const CONTENT = [2, 3]
const HEARTBEAT = 8
const HEAD_BYTES = 7
const METHOD_BYTES = HEAD_BYTES + 4
const TUNE_OK = '10.31'
/** With the channels, the longest frame, and the seconds between heartbeats. */
const TUNE_OK_BYTES = METHOD_BYTES + 8
const FRAME_END = 0xce

const heartbeat = Buffer.from([HEARTBEAT, 0, 0, 0, 0, 0, 0, FRAME_END])

const old = {
  headBytes: (head: Buffer) => {
    if (head[0] !== METHOD) return HEAD_BYTES
    return methodOf(head) === TUNE_OK ? TUNE_OK_BYTES : METHOD_BYTES
  },
  lengthOf: (head: Buffer) => {
    const payload = head.readUInt32BE(3)
    const kind = head[0] ?? 0
    const isFrame = kind === HEARTBEAT ? payload === 0 : kind === METHOD || CONTENT.includes(kind)
    const length = HEAD_BYTES + payload + 1
    return isFrame && length > head.length ? length : Infinity
  },
}

const isFirstVersion = (greeting: Buffer) => greeting.readUInt32BE(4) === 0x00_00_09_01

function methodOf(head: Buffer): string {
  return head[0] === METHOD ? `${head.readUInt16BE(7)}.${head.readUInt16BE(9)}` : ''
}

/** Client methods without a response: publishing, acknowledging, and the ends of exchanges. */
const unanswered = new Set([
  TUNE_OK,
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

function asks(head: Buffer): BytesClass {
  if (head[0] !== METHOD) return 'word'
  return unanswered.has(methodOf(head)) ? 'word' : 'question'
}

// 1.0

const LETTER_A = 0x41
const NEW_HEAD_BYTES = 8

/** Protocol headers come between frames, and once more after authentication. */
function newReader(): FrameReader {
  return readerOfFrames(
    {
      skip: 0,
      headBytes: () => NEW_HEAD_BYTES,
      lengthOf: (head) => {
        if (head[0] === LETTER_A) return NEW_HEAD_BYTES
        const length = head.readUInt32BE(0)
        return length >= NEW_HEAD_BYTES ? length : Infinity
      },
    },
    (head) => (head[0] !== LETTER_A && head.readUInt32BE(0) === NEW_HEAD_BYTES ? 'nothing' : 'word'),
  )
}
