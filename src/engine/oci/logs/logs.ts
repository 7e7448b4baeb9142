// A machine's log: files of conmon, run after run, each rotated into parts by renaming, so that at least the newest
// 16 MB stay and little more (conmon's own limit would drop everything at once).

import { join } from 'node:path'
import type { LogLine, LogQuery } from '../../engine.ts'
import { withoutBrokenStart } from '../../../lib/utf8.ts'
import type { EngineContext } from '../machine/context.ts'
import { type Cursor, formatCursor, parseCursor, type Stream } from './cursor.ts'
import { newLine, NOTHING, type OpenLine, textAtEnd, withRow } from './open-line.ts'
import { comparePosition, listParts, type Part, type Position, rowsOf, type Work } from './parts.ts'
import { bytesBeforeEnd, findSince } from './seek.ts'
import { beginOfUnfinished } from './unfinished.ts'
import { watchWrites } from './writes.ts'

const STREAMS: Stream[] = ['stdout', 'stderr']

/** How soon a follower notices the end of the run, of which no file tells. */
const FOLLOW_EVERY_MS = 200
/** What is written within this time is read together, so that a machine that prints all the time costs no more. */
const GATHER_MS = 50
/** A longer line is returned in several pieces, which are marked as continued. */
const MAX_LINE_CHARS = 256 * 1024
/** How far before its end a line can begin, with rows of the other stream in between. */
const LINE_BYTES = 2 * MAX_LINE_CHARS
/** A page ends with the line that exceeds this: its cursor continues from there. */
const PAGE_CHARS = 512 * 1024
/** How much is first read for the newest lines; four times as much each time it was too little. */
const NEWEST_BYTES = 64 * 1024

/** The file that the run's conmon writes: its number is one above those of the finished parts. */
export function currentLogFile(host: Pick<EngineContext, 'paths'>, id: string, generation: number): string {
  return join(host.paths.machine(id).logs, `${generation}.log`)
}

/** Its cost is proportional to the result, whatever the size of the log. `work` counts it. */
export async function readLogs(
  host: Pick<EngineContext, 'machines' | 'paths'>,
  id: string,
  query: LogQuery,
  work: Work = { bytes: 0, rows: 0 },
): Promise<LogLine[]> {
  const { generation } = query
  const machine = host.machines.get(id)?.record
  const isRunning = machine?.state === 'running' && machine.generation === (generation ?? machine.generation)
  const all = await listParts(host.paths.machine(id).logs, work)
  const parts = generation === undefined ? all : all.filter((part) => part.generation === generation)
  if (query.after === null && query.since === null) return newestLines(parts, query.limit, isRunning)
  const from = query.after === null ? await cursorSince(parts, query.since) : parseCursor(query.after)
  const lines: LogLine[] = []
  let chars = 0
  for await (const line of linesFrom(parts, from, isRunning)) {
    lines.push(line)
    chars += line.text.length
    if (lines.length >= query.limit || chars >= PAGE_CHARS) break
  }
  return lines
}

async function cursorSince(parts: Part[], since: Date | null): Promise<Cursor | null> {
  const end = since && (await findSince(parts, since))
  return end ? await cursorAt(parts, end) : null
}

async function cursorAt(parts: Part[], end: Position): Promise<Cursor> {
  return { end, isOfLine: false, cut: new Map(), ...(await beginOfUnfinished(parts, end, LINE_BYTES)) }
}

export async function* followLogs(
  host: EngineContext,
  id: string,
  after: string | null,
  signal: AbortSignal,
): AsyncIterable<LogLine> {
  let cursor = after === null ? null : parseCursor(after)
  const { logs } = host.paths.machine(id)
  const writes = watchWrites(host.clock, logs)
  try {
    while (!signal.aborted) {
      const beganMs = host.clock.monotonicMs()
      // Asked before reading: what a run wrote up to its end is read once more after it.
      const isRunning = host.machines.get(id)?.record.state === 'running'
      for await (const line of linesFrom(await listParts(logs), cursor, isRunning)) {
        if (signal.aborted) return
        cursor = parseCursor(line.cursor)
        yield line
      }
      if (!isRunning) return
      await writes.next(FOLLOW_EVERY_MS, signal)
      const gatherMs = GATHER_MS - (host.clock.monotonicMs() - beganMs)
      if (gatherMs > 0) await host.clock.sleep(gatherMs, signal).catch(() => undefined)
    }
  } finally {
    writes.close()
  }
}

/**
 * Yields lines after a cursor, each assembled from its rows: conmon cuts long lines, the streams are mixed, and a part
 * may end within a line. After the end of the run, an unfinished line counts as a line.
 */
async function* linesFrom(parts: Part[], cursor: Cursor | null, isRunning: boolean): AsyncIterable<LogLine> {
  const open = new Map<Stream, OpenLine>()
  const cut = new Map(cursor?.cut)
  const broken = new Set(cursor?.broken)
  const isWanted = (end: Position) => cursor === null || comparePosition(end, cursor.end) > 0
  const isReturned = (end: Position) => cursor?.isOfLine === true && comparePosition(end, cursor.end) === 0
  for (const [index, part] of parts.entries()) {
    const order =
      cursor === null ? 1 : comparePosition({ ...part, offset: 0 }, { ...cursor.begin, offset: 0 })
    if (order < 0) continue
    let end: Position = { ...part, offset: order === 0 && cursor ? cursor.begin.offset : 0 }
    const isKnownStart = order === 0 && cursor?.isOfLine === true
    // What was before it in its run has been deleted.
    if (index === 0 && part.part > 1 && end.offset === 0 && !isKnownStart)
      STREAMS.forEach((each) => broken.add(each))
    for await (const found of rowsOf(part, end.offset)) {
      const { stream, partial } = found
      const row = broken.delete(stream) ? { ...found, text: withoutBrokenStart(found.text) } : found
      const line = withRow(open.get(stream) ?? newLine(end, cut.get(stream) ?? NOTHING), row)
      end = { ...part, offset: row.end }
      if (partial && line.text.length < MAX_LINE_CHARS && !isReturned(end)) {
        open.set(stream, line)
        continue
      }
      const rest = isReturned(end) ? (cut.get(stream) ?? NOTHING) : line.rest
      cut.delete(stream)
      if (rest.length > 0) open.set(stream, { ...newLine(end, rest), at: row.at })
      else open.delete(stream)
      if (!isWanted(end)) continue
      const more = partial ? { continues: true as const } : {}
      yield { at: row.at, stream, text: line.text, ...more, cursor: formatCursor(end, open) }
    }
    const next = parts[index + 1]
    const runIsOver = next ? next.generation !== part.generation : !isRunning
    if (!runIsOver) continue
    broken.clear()
    cut.clear()
    for (const [stream, line] of open) {
      open.delete(stream)
      if (!isWanted(end)) continue
      yield { at: line.at, stream, text: textAtEnd(line), cursor: formatCursor(end, open) }
    }
  }
}

async function newestLines(parts: Part[], limit: number, isRunning: boolean): Promise<LogLine[]> {
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0)
  for (let wanted = NEWEST_BYTES; ; wanted *= 4) {
    const isAll = wanted >= bytes || wanted >= 2 * PAGE_CHARS
    const end = await bytesBeforeEnd(parts, wanted)
    const from = wanted >= bytes ? null : await cursorAt(parts, end)
    let lines: LogLine[] = []
    for await (const line of linesFrom(parts, from, isRunning)) {
      lines.push(line)
      // Only the newest are wanted: older ones are dropped in batches.
      if (lines.length > 2 * limit) lines = lines.slice(-limit)
    }
    if (isAll || lines.length >= limit) return lines.slice(-limit)
  }
}
