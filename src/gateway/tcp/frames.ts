// Parses the heads of frames in a byte stream, to classify each piece by the frames in it. Only one head is buffered.

import type { BytesClass } from '../sessions/bytes-class.ts'

export type Frames = {
  /** Bytes before the first frame. */
  skip: number
  /**
   * The length of the frame's head: at least one byte, and at least enough bytes to compute the length, since missing
   * bytes have arbitrary values. At most `MAX_HEAD_BYTES`.
   */
  headBytes: (head: Buffer) => number
  /** The length of the whole frame. Infinity: it is not a frame, and nothing after it is parsed. */
  lengthOf: (head: Buffer) => number
}

/** Room for a whole WebSocket ping, so that it can be answered. */
export const MAX_HEAD_BYTES = 160
const strength = { nothing: 0, word: 1, question: 2 } as const

export type FrameReader = {
  hear: (piece: Buffer) => BytesClass
  /** Whether every frame that has begun is complete. */
  isBetween: () => boolean
}

/** `saidBy` classifies a frame by its head, which is only valid during the call. */
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
