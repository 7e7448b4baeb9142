// Output of both streams in the order it came, as events of JSON, without losing or doubling a byte: at each moment it is
// known up to which offset everything has been told. A character waits for its rest only until the other stream speaks.

import type { ExecOutputEvent } from '../../contract/exec.ts'
import { outputFrames } from './output-frames.ts'

export type OrderedEvent = ExecOutputEvent & { stream: 'stdout' | 'stderr' }

/** `end`: the offset behind it. */
type Piece = { stream: OrderedEvent['stream']; data: Buffer; end: number }

export type OrderedFrames = {
  push(piece: Piece): OrderedEvent[]
  /** What still waits when no more comes. */
  end(): OrderedEvent[]
  /** The offset up to which all has been told. */
  told(): number
  /** Bytes that were passed over, since they were no longer there. */
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
