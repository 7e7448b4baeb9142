// A machine's log: files of conmon's, one run after another, each cut into parts by renaming so that the
// newest 16 MB at least stay and little more (conmon's own limit would drop all of it at once).
// A cursor is (generation, part, byte offset after the line).

import { open, readdir, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { limits } from '../../contract/limits.ts'
import type { LogLine, LogQuery } from '../engine.ts'
import { EngineError } from '../errors.ts'
import type { Host } from './host.ts'
import { parseLogLine, type ParsedLine } from './log-line.ts'
import { reopenLog } from './monitor.ts'

/** `finished`: nothing is written to it any more. */
type Part = { generation: number; part: number; path: string; bytes: number; finished: boolean }
type Position = { generation: number; part: number; offset: number }

const PART_BYTES = limits.logBytes / 4
const READ_BYTES = 256 * 1024
const FOLLOW_EVERY_MS = 200
/** A longer line is cut: conmon splits lines itself, so only an edited file could hold one. */
const MAX_LINE_BYTES = 64 * 1024

/** Where the run's conmon writes: the part being written is always numbered one above the finished ones. */
export function currentLogFile(host: Host, id: string, generation: number): string {
  return join(host.paths.machine(id).logs, `${generation}.log`)
}

/** Moves the current part aside once it is large, and drops the oldest parts over the bound. */
export async function rotateLog(host: Host, id: string, generation: number): Promise<void> {
  const current = currentLogFile(host, id, generation)
  const { size } = await stat(current).catch(() => ({ size: 0 }))
  if (size < PART_BYTES) return
  const part = (await listParts(host, id)).find((one) => one.path === current)
  if (!part) return
  await rename(current, join(host.paths.machine(id).logs, `${generation}.${part.part}.log`))
  await reopenLog(host.paths.run(id, generation)).catch((error: unknown) => {
    host.log.warn({ error, machine: id }, 'conmon did not reopen its log')
  })
  await dropOldest(await listParts(host, id))
}

export async function readLogs(host: Host, id: string, query: LogQuery): Promise<LogLine[]> {
  const parts = await listParts(host, id)
  if (query.after === null && query.since === null) return newestLines(parts, query.limit)
  const from = query.after === null ? null : parseCursor(query.after)
  const lines: LogLine[] = []
  for await (const line of linesFrom(parts, from)) {
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
  isRunning: () => boolean,
  signal: AbortSignal,
): AsyncIterable<LogLine> {
  let position = after === null ? null : parseCursor(after)
  while (!signal.aborted) {
    // Asked before reading: what a run wrote until its end is read once more after it.
    const running = isRunning()
    for await (const line of linesFrom(await listParts(host, id), position)) {
      if (signal.aborted) return
      position = parseCursor(line.cursor)
      yield line
    }
    if (!running) return
    await host.clock.sleep(FOLLOW_EVERY_MS, signal).catch(() => undefined)
  }
}

async function* linesFrom(parts: Part[], from: Position | null): AsyncIterable<LogLine> {
  for (const part of parts) {
    const order = from === null ? 1 : comparePosition(part, from)
    if (order < 0) continue
    yield* linesOfPart(part, order === 0 && from ? from.offset : 0)
  }
}

async function newestLines(parts: Part[], limit: number): Promise<LogLine[]> {
  let lines: LogLine[] = []
  for (const part of parts.toReversed()) {
    const ofPart: LogLine[] = []
    for await (const line of linesOfPart(part, 0)) {
      ofPart.push(line)
      // Only the newest are wanted: what is over twice that is dropped in one go.
      if (ofPart.length > 2 * limit) ofPart.splice(0, ofPart.length - limit)
    }
    lines = [...ofPart, ...lines].slice(-limit)
    if (lines.length >= limit) break
  }
  return lines
}

/** Complete lines of one part from a byte offset on. A partial line at the end waits for its rest. */
async function* linesOfPart(part: Part, offset: number): AsyncIterable<LogLine> {
  const file = await open(part.path, 'r').catch(() => null)
  if (!file) return
  try {
    let position = offset
    let rest = Buffer.alloc(0)
    let partial = ''
    let last: ParsedLine | null = null
    const buffer = Buffer.alloc(READ_BYTES)
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, READ_BYTES, position + rest.length)
      if (bytesRead === 0) break
      rest = Buffer.concat([rest, buffer.subarray(0, bytesRead)])
      let end = rest.indexOf(10)
      while (end >= 0) {
        const parsed = parseLogLine(rest.toString('utf8', 0, Math.min(end, MAX_LINE_BYTES)))
        position += end + 1
        rest = rest.subarray(end + 1)
        end = rest.indexOf(10)
        if (!parsed) continue
        partial += parsed.text
        last = parsed
        if (parsed.partial && partial.length < MAX_LINE_BYTES) continue
        yield lineAt(part, position, parsed, partial)
        partial = ''
      }
    }
    // A line whose rest went to the next part.
    if (part.finished && last && partial !== '') yield lineAt(part, position, last, partial)
  } finally {
    await file.close()
  }
}

function lineAt(part: Part, offset: number, parsed: ParsedLine, text: string): LogLine {
  const cursor = formatCursor({ generation: part.generation, part: part.part, offset })
  return { at: parsed.at, stream: parsed.stream, text, cursor }
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
    .map((one) => ({ ...one, part: one.part ?? lastOf(one.generation) + 1, finished: one.part !== null }))
    .sort((a, b) => a.generation - b.generation || a.part - b.part)
}

async function dropOldest(parts: Part[]): Promise<void> {
  let kept = 0
  for (const part of parts.toReversed()) {
    if (kept >= limits.logBytes) await unlink(part.path).catch(() => undefined)
    kept += part.bytes
  }
}

function comparePosition(part: Part, position: Position): number {
  return part.generation - position.generation || part.part - position.part
}

function formatCursor({ generation, part, offset }: Position): string {
  return `${generation}.${part}.${offset}`
}

function parseCursor(cursor: string): Position {
  const match = /^(\d{1,9})\.(\d{1,9})\.(\d{1,12})$/.exec(cursor)
  if (!match) throw new EngineError('bad_cursor', 'The cursor is not one that this machine gave.')
  return { generation: Number(match[1]), part: Number(match[2]), offset: Number(match[3]) }
}
