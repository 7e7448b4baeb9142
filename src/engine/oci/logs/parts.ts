// The files of a machine's log, and their rows from a byte offset on. Reads are counted, because a caller must not be
// able to make the engine read a whole log.

import { open, readdir, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { limits } from '../../../contract/limits.ts'
import { type LogRow, parseLogRow } from './line.ts'

export type Part = { generation: number; part: number; path: string; bytes: number; work: Work }
export type Position = { generation: number; part: number; offset: number }
/** The cost of reading so far. */
export type Work = { bytes: number; rows: number }
export type Row = LogRow & { end: number }

export const LINE_BREAK = 10
/** Other work runs between two reads: this much is parsed in about a millisecond. */
const READ_BYTES = 64 * 1024
/** conmon writes rows of at most some 8 KB, so only an edited file could contain a longer one. */
const MAX_ROW_BYTES = 64 * 1024

/** Yields rows from a byte offset on; an incomplete row waits for its end. */
export async function* rowsOf(part: Part, offset: number, readBytes = READ_BYTES): AsyncIterable<Row> {
  const file = await open(part.path, 'r').catch(() => null)
  if (!file) return
  try {
    let position = offset
    let rest = Buffer.alloc(0)
    const buffer = Buffer.alloc(readBytes)
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, readBytes, position + rest.length)
      part.work.bytes += bytesRead
      if (bytesRead === 0) return
      rest = Buffer.concat([rest, buffer.subarray(0, bytesRead)])
      let begin = 0
      for (let end = rest.indexOf(LINE_BREAK); end >= 0; end = rest.indexOf(LINE_BREAK, begin)) {
        const parsed = parseLogRow(rest.subarray(begin, Math.min(end, begin + MAX_ROW_BYTES)))
        position += end + 1 - begin
        begin = end + 1
        part.work.rows += 1
        if (parsed) yield { ...parsed, end: position }
      }
      rest = rest.subarray(begin)
    }
  } finally {
    await file.close()
  }
}

/** Oldest first; the current part of a run has no number and comes after its numbered ones. */
export async function listParts(directory: string, work: Work = { bytes: 0, rows: 0 }): Promise<Part[]> {
  const names = await readdir(directory).catch(() => [])
  const found = await Promise.all(
    names.map(async (name) => {
      const match = /^(\d+)(?:\.(\d+))?\.log$/.exec(name)
      if (!match) return null
      const path = join(directory, name)
      const bytes = await stat(path).then(
        (info) => info.size,
        () => 0,
      )
      return { generation: Number(match[1]), part: match[2] ? Number(match[2]) : null, path, bytes }
    }),
  )
  const parts = found.filter((one) => one !== null)
  const last = new Map<number, number>()
  for (const { generation, part } of parts) {
    last.set(generation, Math.max(last.get(generation) ?? 0, part ?? 0))
  }
  return parts
    .map((one) => ({ ...one, part: one.part ?? (last.get(one.generation) ?? 0) + 1, work }))
    .sort((a, b) => a.generation - b.generation || a.part - b.part)
}

/** Keeps the newest parts up to the limit, including the one that reaches it. */
export async function dropOldest(parts: Part[]): Promise<void> {
  let kept = 0
  for (const part of parts.toReversed()) {
    if (kept >= limits.logBytes) await unlink(part.path).catch(() => undefined)
    kept += part.bytes
  }
}

export function comparePosition(a: Position, b: Position): number {
  return a.generation - b.generation || a.part - b.part || a.offset - b.offset
}
