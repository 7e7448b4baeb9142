// A machine's log: files of conmon's, one run after another, each cut into parts by renaming so that the
// newest 16 MB at least stay and little more (conmon's own limit would drop all of it at once).
// A cursor is (generation, part, byte offset after the line), and where an unfinished line beside it began.

import { statSync } from 'node:fs'
import { open, readdir, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { limits } from '../../contract/limits.ts'
import type { LogLine, LogQuery } from '../engine.ts'
import { EngineError } from '../errors.ts'
import type { Host } from './host.ts'
import { parseLogLine, type ParsedLine } from './log-line.ts'
import { reopenLog } from './monitor.ts'

type Part = { generation: number; part: number; path: string; bytes: number }
type Position = { generation: number; part: number; offset: number }
/** `end` is where the last line given out ended; reading begins at `begin`, where an unfinished line did. */
type Cursor = { end: Position; begin: Position }

const PART_BYTES = limits.logBytes / 4
const READ_BYTES = 256 * 1024
const FOLLOW_EVERY_MS = 200
/** A longer line is cut: conmon splits lines itself, so only an edited file could hold one. */
const MAX_LINE_BYTES = 64 * 1024

/** Where the run's conmon writes: the part being written is always numbered one above the finished ones. */
export function currentLogFile(host: Host, id: string, generation: number): string {
  return join(host.paths.machine(id).logs, `${generation}.log`)
}

/** Whether the current part is to be moved aside. Asked several times a second, of every running machine. */
export function isLogLarge(host: Host, id: string, generation: number): boolean {
  const found = statSync(currentLogFile(host, id, generation), { throwIfNoEntry: false })
  return found !== undefined && found.size >= PART_BYTES
}

/** Moves the current part aside, and drops the oldest parts over the bound. */
export async function rotateLog(host: Host, id: string, generation: number): Promise<void> {
  const current = currentLogFile(host, id, generation)
  const part = (await listParts(host, id)).find((one) => one.path === current)
  if (!part) return
  await rename(current, join(host.paths.machine(id).logs, `${generation}.${part.part}.log`))
  await reopenLog(host.paths.run(id, generation)).catch((error: unknown) => {
    host.log.warn({ err: error, machine: id }, 'conmon did not reopen its log')
  })
  await dropOldest(await listParts(host, id))
}

export async function readLogs(host: Host, id: string, query: LogQuery): Promise<LogLine[]> {
  const isRunning = host.machines.get(id)?.record.state === 'running'
  const parts = await listParts(host, id)
  if (query.after === null && query.since === null) return newestLines(parts, query.limit, isRunning)
  const from = query.after === null ? null : parseCursor(query.after)
  const lines: LogLine[] = []
  for await (const line of linesFrom(parts, from, isRunning)) {
    if (query.since && line.at < query.since) continue
    lines.push(line)
    if (lines.length >= query.limit) break
  }
  return lines
}

export async function* followLogs(
  host: Host,
  id: string,
  after: string | null,
  signal: AbortSignal,
): AsyncIterable<LogLine> {
  let cursor = after === null ? null : parseCursor(after)
  while (!signal.aborted) {
    // Asked before reading: what a run wrote until its end is read once more after it.
    const isRunning = host.machines.get(id)?.record.state === 'running'
    for await (const line of linesFrom(await listParts(host, id), cursor, isRunning)) {
      if (signal.aborted) return
      cursor = parseCursor(line.cursor)
      yield line
    }
    if (!isRunning) return
    await host.clock.sleep(FOLLOW_EVERY_MS, signal).catch(() => undefined)
  }
}

/** An unfinished line of one stream: what it holds so far, and where it began. */
type Open = { text: string; at: Date; begin: Position }

/**
 * Lines after a cursor, each put together from its pieces: conmon cuts long lines, the streams mix, and a
 * part may end within a line. What has no end is a line once its run is over.
 */
async function* linesFrom(parts: Part[], cursor: Cursor | null, isRunning: boolean): AsyncIterable<LogLine> {
  const open = new Map<ParsedLine['stream'], Open>()
  for (const [index, part] of parts.entries()) {
    const order =
      cursor === null ? 1 : comparePosition({ ...part, offset: 0 }, { ...cursor.begin, offset: 0 })
    if (order < 0) continue
    let end: Position = { ...part, offset: order === 0 && cursor ? cursor.begin.offset : 0 }
    for await (const piece of piecesOf(part, end.offset)) {
      const begin = open.get(piece.stream)?.begin ?? end
      end = { ...part, offset: piece.end }
      const text = (open.get(piece.stream)?.text ?? '') + piece.text
      if (piece.partial && text.length < MAX_LINE_BYTES) {
        open.set(piece.stream, { text, at: piece.at, begin })
        continue
      }
      open.delete(piece.stream)
      if (cursor !== null && comparePosition(end, cursor.end) <= 0) continue
      yield { at: piece.at, stream: piece.stream, text, cursor: formatCursor(end, open) }
    }
    const next = parts[index + 1]
    const runIsOver = next ? next.generation !== part.generation : !isRunning
    if (!runIsOver) continue
    for (const [stream, { text, at }] of open) {
      open.delete(stream)
      if (cursor === null || comparePosition(end, cursor.end) > 0) {
        yield { at, stream, text, cursor: formatCursor(end, open) }
      }
    }
  }
}

async function newestLines(parts: Part[], limit: number, isRunning: boolean): Promise<LogLine[]> {
  let lines: LogLine[] = []
  // The first line of a part may be the tail of one that began before it: hence one more than is asked for.
  for (let count = 1; count <= parts.length && lines.length <= limit; count += 1) {
    lines = []
    for await (const line of linesFrom(parts.slice(-count), null, isRunning)) {
      lines.push(line)
      // Only the newest are wanted: what is far over that is dropped in one go.
      if (lines.length > 2 * limit + 2) lines.splice(0, lines.length - limit - 1)
    }
  }
  return lines.slice(-limit)
}

/** What conmon wrote from a byte offset on; a row that is still being written waits for its end. */
async function* piecesOf(part: Part, offset: number): AsyncIterable<ParsedLine & { end: number }> {
  const file = await open(part.path, 'r').catch(() => null)
  if (!file) return
  try {
    let position = offset
    let rest = Buffer.alloc(0)
    const buffer = Buffer.alloc(READ_BYTES)
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, READ_BYTES, position + rest.length)
      if (bytesRead === 0) return
      rest = Buffer.concat([rest, buffer.subarray(0, bytesRead)])
      let begin = 0
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10, begin)) {
        const parsed = parseLogLine(rest.toString('utf8', begin, Math.min(end, begin + MAX_LINE_BYTES)))
        position += end + 1 - begin
        begin = end + 1
        if (parsed) yield { ...parsed, end: position }
      }
      rest = rest.subarray(begin)
    }
  } finally {
    await file.close()
  }
}

/** Oldest first; the part a run is writing has no number of its own and comes after its numbered ones. */
async function listParts(host: Host, id: string): Promise<Part[]> {
  const directory = host.paths.machine(id).logs
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
  const lastOf = (generation: number) =>
    Math.max(0, ...parts.filter((one) => one.generation === generation).map((one) => one.part ?? 0))
  return parts
    .map((one) => ({ ...one, part: one.part ?? lastOf(one.generation) + 1 }))
    .sort((a, b) => a.generation - b.generation || a.part - b.part)
}

async function dropOldest(parts: Part[]): Promise<void> {
  let kept = 0
  for (const part of parts.toReversed()) {
    if (kept >= limits.logBytes) await unlink(part.path).catch(() => undefined)
    kept += part.bytes
  }
}

function comparePosition(a: Position, b: Position): number {
  return a.generation - b.generation || a.part - b.part || a.offset - b.offset
}

function formatCursor(end: Position, open: Map<unknown, Open>): string {
  const [begin] = [...open.values()].map((line) => line.begin).sort(comparePosition)
  return [end, ...(begin ? [begin] : [])].map((at) => `${at.generation}.${at.part}.${at.offset}`).join('-')
}

function parseCursor(cursor: string): Cursor {
  const positions = cursor.split('-').map(parsePosition)
  const [end, begin = end] = positions
  if (!end || !begin || positions.length > 2) throw badCursor()
  return { end, begin }
}

function parsePosition(text: string): Position {
  const match = /^(\d{1,9})\.(\d{1,9})\.(\d{1,12})$/.exec(text)
  if (!match) throw badCursor()
  return { generation: Number(match[1]), part: Number(match[2]), offset: Number(match[3]) }
}

function badCursor(): EngineError {
  return new EngineError('bad_cursor', 'The cursor is not one that this machine gave.')
}
