// Finds where in a log to begin: at a time, or a number of bytes before its end. Rows are in the order of their
// times, so a binary search finds a place in a log of any size.

import { endOfRow, type Part, type Position, type Row, rowsOf } from './parts.ts'

/** Each probe reads this much: more than any row that conmon writes. */
const LOOK_BYTES = 16 * 1024

/** Returns where the first row of that time or later begins, or the end of the log. Null if the log is empty. */
export async function findSince(parts: Part[], since: Date): Promise<Position | null> {
  const filled = parts.filter(({ bytes }) => bytes > 0)
  const index = await firstWhere(1, filled.length, async (at) => {
    const row = await rowFrom(filled[at], 0)
    return row !== null && row.at >= since
  })
  const part = filled[index - 1]
  if (!part) return null
  const { bytes } = part
  // Its last row before that time is within the probe that ends here, or begins in it.
  const late = await firstWhere(0, Math.ceil(bytes / LOOK_BYTES), async (look) => {
    const row = await rowFrom(part, await rowStart(part, look * LOOK_BYTES))
    return row === null || row.at >= since
  })
  let offset = await rowStart(part, Math.max(0, late - 1) * LOOK_BYTES)
  for await (const row of rowsOf(part, offset, LOOK_BYTES)) {
    if (row.at >= since) return { ...place(part), offset }
    offset = row.end
  }
  const next = filled[index]
  return next ? { ...place(next), offset: 0 } : { ...place(part), offset }
}

/** Returns the beginning of a row at least this many bytes before the end of the log, or the log's beginning. */
export async function bytesBeforeEnd(parts: Part[], bytes: number): Promise<Position> {
  let left = bytes
  for (const part of parts.toReversed()) {
    if (left < part.bytes) return { ...place(part), offset: await rowStart(part, part.bytes - left) }
    left -= part.bytes
  }
  const [first] = parts
  return first ? { ...place(first), offset: 0 } : { generation: 0, part: 0, offset: 0 }
}

/** Returns where the first row at or after an offset begins, or the end of the part. */
async function rowStart(part: Part, offset: number): Promise<number> {
  return offset <= 0 ? 0 : await endOfRow(part, offset - 1)
}

async function rowFrom(part: Part | undefined, offset: number): Promise<Row | null> {
  if (!part) return null
  for await (const row of rowsOf(part, offset, LOOK_BYTES)) return row
  return null
}

/**
 * Returns the first number from `low` on for which the condition holds, if it then holds for all that follow; `high`
 * if none.
 */
async function firstWhere(
  low: number,
  high: number,
  holds: (at: number) => Promise<boolean>,
): Promise<number> {
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (await holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}

function place({ generation, part }: Part): Omit<Position, 'offset'> {
  return { generation, part }
}
