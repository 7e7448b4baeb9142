// Turns the output of both streams into JSON events in the order it was printed. No byte is lost or sent twice: the
// offset that has been sent completely is always known. An incomplete character waits for its remaining bytes until
// the other stream prints.

import type { ExecOutputEvent } from '../../contract/exec.ts'
import { outputFrames } from './output-frames.ts'

export type OrderedEvent = ExecOutputEvent & { stream: 'stdout' | 'stderr' }

/** `end`: the offset after the last byte. */
type Piece = { stream: OrderedEvent['stream']; data: Buffer; end: number }

export type OrderedFrames = {
  push(piece: Piece): OrderedEvent[]
  /** Returns the bytes still waiting, once no more will come. */
  end(): OrderedEvent[]
  /** The offset up to which everything has been sent. */
  told(): number
  /** The number of bytes that were skipped because they had already been deleted. */
  dropped(): number
}

export function orderedFrames(after: number): OrderedFrames {
  const frames = outputFrames()
  let stream: OrderedEvent['stream'] = 'stdout'
  let position = after
  let dropped = 0
  const named = (events: ExecOutputEvent[]): OrderedEvent[] => events.map((event) => ({ stream, ...event }))

  return {
    push(piece) {
      const begin = piece.end - piece.data.length
      const goesOn = piece.stream === stream && begin === position
      const before = goesOn ? [] : named(frames.end())
      dropped += Math.max(0, begin - position)
      stream = piece.stream
      position = piece.end
      return [...before, ...named(frames.push(piece.data))]
    },
    end: () => named(frames.end()),
    told: () => position - frames.held(),
    dropped: () => dropped,
  }
}
