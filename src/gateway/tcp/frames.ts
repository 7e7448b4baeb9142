// Frames in a stream of bytes, as far as their heads: what a piece of it says, from the kinds of frames that it has
// something of. Nothing is kept but one head.

import type { Said } from './classify-bytes.ts'

export type Frames = {
  /** Bytes before the first one. */
  skip: number
  /** How long its head is, as far as what there is of it tells: one byte at least. */
  headBytes: (head: Buffer) => number
  /** Of all of it. */
  lengthOf: (head: Buffer) => number
}

const MOST_HEAD_BYTES = 16
const strength = { nothing: 0, word: 1, question: 2 } as const

/** `saidBy`: by a frame with this head. */
export function readerOfFrames(
  { skip, headBytes, lengthOf }: Frames,
  saidBy: (head: Buffer) => Said,
): (piece: Buffer) => Said {
  const head = Buffer.alloc(MOST_HEAD_BYTES)
  let headLength = 0
  let left = skip
  let current: Said = 'word'
  return (piece) => {
    let said: Said = 'nothing'
    const hear = () => {
      if (strength[current] > strength[said]) said = current
    }
    for (let at = 0; at < piece.length; ) {
      if (left > 0) {
        const step = Math.min(left, piece.length - at)
        left -= step
        at += step
        hear()
        continue
      }
      head[headLength] = piece[at] ?? 0
      headLength += 1
      at += 1
      if (headLength < headBytes(head)) continue
      const whole = head.subarray(0, headLength)
      left = lengthOf(whole) - headLength
      current = saidBy(whole)
      headLength = 0
      hear()
    }
    return said
  }
}
