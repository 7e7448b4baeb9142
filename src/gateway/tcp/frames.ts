// Frames in a stream of bytes, as far as their heads: what a piece of it says, from the kinds of frames that it has
// something of. Nothing is kept but one head.

import type { BytesClass } from './classify-bytes.ts'

export type Frames = {
  /** Bytes before the first one. */
  skip: number
  /**
   * How long its head is: one byte at least, and never fewer than it takes to tell, since what is not there yet reads as
   * anything. At most `MAX_HEAD_BYTES`.
   */
  headBytes: (head: Buffer) => number
  /** Of all of it. Infinity: it is no frame, and nothing behind it is read as one. */
  lengthOf: (head: Buffer) => number
}

/** Room for a whole ping of a WebSocket, so that it can be answered. */
export const MAX_HEAD_BYTES = 160
const strength = { nothing: 0, word: 1, question: 2 } as const

export type FrameReader = {
  hear: (piece: Buffer) => BytesClass
  /** Every frame that has begun is whole. */
  isBetween: () => boolean
}

/** `saidBy`: by a frame with this head, which is good until it returns. */
export function readerOfFrames(
  { skip, headBytes, lengthOf }: Frames,
  saidBy: (head: Buffer) => BytesClass,
): FrameReader {
  const head = Buffer.alloc(MAX_HEAD_BYTES)
  let headLength = 0
  let left = skip
  let current: BytesClass = 'word'
  const hear = (piece: Buffer): BytesClass => {
    let said: BytesClass = 'nothing'
    const note = () => {
      if (strength[current] > strength[said]) said = current
    }
    for (let at = 0; at < piece.length; ) {
      if (left > 0) {
        const step = Math.min(left, piece.length - at)
        left -= step
        at += step
        note()
        continue
      }
      head[headLength] = piece[at] ?? 0
      headLength += 1
      at += 1
      if (headLength < headBytes(head)) continue
      const whole = head.subarray(0, headLength)
      left = lengthOf(whole) - headLength
      current = left === Infinity ? 'word' : saidBy(whole)
      headLength = 0
      note()
    }
    return said
  }
  return { hear, isBetween: () => left === 0 && headLength === 0 }
}
