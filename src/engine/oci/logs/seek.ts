// Finds where in a log to begin: at a time, or a number of bytes before its end. Rows are in the order of their
// times, so a binary search finds a place in a log of any size.

import { type FileHandle, open } from 'node:fs/promises'
import { parseLogRow } from './line.ts'
import { LINE_BREAK, type Part, type Position, rowsOf } from './parts.ts'

/** Each probe reads this much: more than any two rows that conmon writes. */
const PROBE_BYTES = 16 * 1024

/** The first row that begins at an offset or later. `at`: its time, null if none follows. */
type Probe = { offset: number; at: Date | null }

/** Returns where the first row of that time or later begins, or the end of the log. Null if the log is empty. */
export async function findSince(parts: Part[], since: Date): Promise<Position | null> {
  const isBefore = ({ at }: Probe) => at !== null && at < since
  const filled = parts.filter(({ bytes }) => bytes > 0)
  const index = await firstWhere(
    1,
    filled.length,
    async (at) => !isBefore(await probeOf(filled[at], async (probe) => await probe(0))),
  )
  const part = filled[index - 1]
  if (!part) return null
  // The last row before that time is within the last probe that begins before it.
  const { offset: begin } = await probeOf(part, async (probe) => {
    const late = await firstWhere(0, Math.ceil(part.bytes / PROBE_BYTES), async (nth) => {
      return !isBefore(await probe(nth * PROBE_BYTES))
    })
    return await probe(Math.max(0, late - 1) * PROBE_BYTES)
  })
  let offset = begin
  for await (const row of rowsOf(part, begin, PROBE_BYTES)) {
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
    const offset = part.bytes - left
    if (offset > 0) {
      const found = await probeOf(part, async (probe) => await probe(offset))
      return { ...place(part), offset: found.offset }
    }
    left -= part.bytes
  }
  const [first] = parts
  return first ? { ...place(first), offset: 0 } : { generation: 0, part: 0, offset: 0 }
}

/** Opens the part once for all probes of a search. A part that rotation has deleted has no rows. */
async function probeOf(
  part: Part | undefined,
  search: (probe: (offset: number) => Promise<Probe>) => Promise<Probe>,
): Promise<Probe> {
  const file = part && (await open(part.path, 'r').catch(() => null))
  if (!file) return { offset: part?.bytes ?? 0, at: null }
  try {
    return await search(async (offset) => await probeAt(part, file, offset))
  } finally {
    await file.close()
  }
}

async function probeAt(part: Part, file: FileHandle, offset: number): Promise<Probe> {
  // The byte before tells whether a row begins at the offset itself.
  const from = Math.max(0, offset - 1)
  const buffer = Buffer.alloc(PROBE_BYTES)
  const { bytesRead } = await file.read(buffer, 0, PROBE_BYTES, from)
  part.work.bytes += bytesRead
  const bytes = buffer.subarray(0, bytesRead)
  const begin = offset === 0 ? 0 : bytes.indexOf(LINE_BREAK) + 1
  if (offset > 0 && begin === 0) return { offset: part.bytes, at: null }
  return { offset: from + begin, at: timeIn(part, bytes, begin) }
}

/** Returns the time of the first whole row from there on. */
function timeIn(part: Part, bytes: Buffer, from: number): Date | null {
  let begin = from
  for (let end = bytes.indexOf(LINE_BREAK, begin); end >= 0; end = bytes.indexOf(LINE_BREAK, begin)) {
    part.work.rows += 1
    const row = parseLogRow(bytes.subarray(begin, end))
    if (row) return row.at
    begin = end + 1
  }
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
