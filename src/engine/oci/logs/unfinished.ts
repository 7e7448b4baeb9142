// Finds where a line begins of which a read would see the rest only: conmon writes a long line as several rows, and rows
// of the other stream can lie between them. Reads backwards, and of each row its head alone, since most rows are of no
// use to the answer.

import { open } from 'node:fs/promises'
import type { Stream } from './cursor.ts'
import { parseRowHead } from './line.ts'
import { LINE_BREAK, type Part, type Position } from './parts.ts'

const READ_BYTES = 64 * 1024

/** Whole rows, from `firstRow` to the buffer's end. `at`: where the buffer begins in the log. */
type Piece = { rows: Buffer; firstRow: number; at: Position }

/**
 * Returns where the earliest line begins that has rows before `end` and is not finished there; `end` if all are. A line
 * that begins more than `maxBytes` before is taken to begin there, and its stream is in `broken`.
 */
export async function beginOfUnfinished(
  parts: Part[],
  end: Position,
  maxBytes: number,
): Promise<{ begin: Position; broken: Set<Stream> }> {
  const undecided = new Set<Stream>(['stdout', 'stderr'])
  const broken = new Set<Stream>()
  let begin = end
  let earliest = end
  for await (const { rows, firstRow, at } of piecesBefore(parts, end, maxBytes)) {
    for (let row = rowBefore(rows, rows.length); row >= firstRow; row = rowBefore(rows, row)) {
      earliest = { ...at, offset: at.offset + row }
      const head = parseRowHead(rows, row)
      if (head === null || !undecided.has(head.stream)) continue
      if (head.partial) {
        begin = earliest
        broken.add(head.stream)
      } else {
        undecided.delete(head.stream)
        broken.delete(head.stream)
      }
      if (undecided.size === 0) return { begin, broken }
    }
  }
  if (earliest.part === 1 && earliest.offset === 0) broken.clear()
  return { begin, broken }
}

/** Yields what lies before a position in its run, the newest first. */
async function* piecesBefore(parts: Part[], end: Position, maxBytes: number): AsyncIterable<Piece> {
  let left = maxBytes
  for (const part of parts.toReversed()) {
    // The end of a run ends its lines.
    if (part.generation !== end.generation || part.part > end.part) continue
    let to = part.part === end.part ? end.offset : part.bytes
    const file = await open(part.path, 'r').catch(() => null)
    if (!file) return
    try {
      while (to > 0 && left > 0) {
        const offset = Math.max(0, to - READ_BYTES)
        const rows = Buffer.alloc(to - offset)
        const { bytesRead } = await file.read(rows, 0, rows.length, offset)
        part.work.bytes += bytesRead
        const firstRow = offset === 0 ? 0 : rows.indexOf(LINE_BREAK) + 1
        const isWhole = bytesRead === rows.length && (offset === 0 || firstRow > 0)
        // conmon writes no row that is longer than a piece.
        if (!isWhole || firstRow === rows.length) return
        yield { rows, firstRow, at: { generation: part.generation, part: part.part, offset } }
        left -= rows.length - firstRow
        to = offset + firstRow
      }
    } finally {
      await file.close()
    }
  }
}

/** Returns where the row begins that ends at `end`; -1 before the first. A loop is faster here than a call a row. */
function rowBefore(rows: Buffer, end: number): number {
  if (end <= 0) return -1
  let begin = end - 1
  while (begin > 0 && rows[begin - 1] !== LINE_BREAK) begin -= 1
  return begin
}
