// Keeps the beginning and the end of a text of any length while it arrives: memory stays bounded, and no character is
// cut. Lengths are code points, as a model's client counts them.

export type Cut = {
  head: string
  /** Empty if nothing was left out. */
  tail: string
  omitted: number
  total: number
}

/** How far back to look for the end of a line to cut at. */
const NEAR = 200

/** A longer line is cut within. */
const LINE = 2000

export type Keeper = { add(text: string): void; cut(): Cut; lastLine(): string }

/** Keeps at most `most` code points, half of them from the beginning. */
export function keepEnds(most: number): Keeper {
  const half = Math.floor(most / 2)
  let head: string[] = []
  let tail: string[] = []
  let total = 0
  return {
    add(text) {
      const points = Array.from(text)
      total += points.length
      const room = half - head.length
      if (room > 0) head = head.concat(points.slice(0, room))
      for (const point of points.slice(Math.max(0, room)).slice(-half)) tail.push(point)
      // Not on every piece, so that the cost of each piece stays proportional to its length.
      if (tail.length > 4 * half) tail = tail.slice(-half)
    },
    cut() {
      if (tail.length > half) tail = tail.slice(-half)
      if (total <= head.length + tail.length) {
        return { head: head.concat(tail).join(''), tail: '', omitted: 0, total }
      }
      const kept = { head: toLineEnd(head), tail: fromLineStart(tail) }
      const omitted = total - Array.from(kept.head).length - Array.from(kept.tail).length
      return { ...kept, omitted, total }
    },
    lastLine() {
      const lines = (tail.length > 0 ? tail : head)
        .slice(-LINE)
        .join('')
        .split(/[\r\n]+/)
      return lines.findLast((line) => line.trim() !== '') ?? ''
    },
  }
}

/** Cuts a whole text in the same way. */
export function cutMiddle(text: string, most: number): Cut {
  const keeper = keepEnds(most)
  keeper.add(text)
  return keeper.cut()
}

/** Returns the same cut with at most `most` code points, head and tail together. */
export function recut({ head, tail, omitted, total }: Cut, most: number): Cut {
  if (omitted === 0) return cutMiddle(head, most)
  const half = Math.floor(most / 2)
  const kept = {
    head: toLineEnd(Array.from(head).slice(0, half)),
    tail: fromLineStart(Array.from(tail).slice(-half)),
  }
  return { ...kept, omitted: total - Array.from(kept.head).length - Array.from(kept.tail).length, total }
}

/** Returns at most `most` code points, ending with an ellipsis if any were left out. */
export function shorten(text: string, most: number): string {
  const points = Array.from(text)
  return points.length <= most ? text : `${points.slice(0, most - 1).join('')}…`
}

function toLineEnd(points: string[]): string {
  const end = points.lastIndexOf('\n')
  return points.slice(0, end >= points.length - NEAR && end > 0 ? end + 1 : points.length).join('')
}

function fromLineStart(points: string[]): string {
  const start = points.indexOf('\n')
  return points.slice(start !== -1 && start < NEAR && start < points.length - 1 ? start + 1 : 0).join('')
}
