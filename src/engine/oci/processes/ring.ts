// The last output of a process: both streams in the order they were printed, in files of a bounded size, of which the
// oldest is deleted when there is too much. The offset of a byte never changes. Data is written out at once, so that
// an engine that is killed loses nothing.
//
// A file is named after the offset of its first byte. It is a sequence of pieces: the stream, four bytes of length,
// the bytes. The length is written before the bytes, so that only the last piece of a file can be incomplete; a new
// engine starts a new file. The number of pieces is limited too, so that finding an offset reads only one file.

import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { limits } from '../../../contract/limits.ts'
import type { ExecOutput } from '../../exec.ts'
import type { ProcessOutput } from '../../process.ts'

export type Ring = {
  append(output: ExecOutput): void
  /** The offsets of the stored bytes. */
  bounds(): { from: number; to: number }
  /** Returns pieces of one stream each, after an offset. */
  read(after: number, maxBytes: number): ProcessOutput[]
  /** The stored output can still be read. */
  close(): void
}

type Part = { start: number; bytes: number; fileBytes: number; pieces: number }
/** The piece being written, as long as its stream continues. */
type Open = { stream: ExecOutput['stream']; at: number; length: number }

const HEADER_BYTES = 5
const PART_BYTES = limits.processOutputBytes / 4
const PART_PIECES = 2000
const MAX_PARTS = 64
const streams = ['stdout', 'stderr'] as const

export function openRing(directory: string): Ring {
  const parts = listParts(directory)
  let file: number | null = null
  let open: Open | null = null

  const last = () => parts.at(-1)
  const to = () => endOf(last())
  const close = () => {
    if (file !== null) closeSync(file)
    file = null
    open = null
  }

  function partToWrite(): { file: number; part: Part } {
    let part = last()
    const isFull = part === undefined || part.fileBytes >= PART_BYTES || part.pieces >= PART_PIECES
    if (file === null || part === undefined || isFull) {
      close()
      const start = to()
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      file = openSync(pathOf(directory, start), 'w', 0o600)
      // A file that was created and never written to has the same name.
      if (part?.start === start) parts.pop()
      part = { start, bytes: 0, fileBytes: 0, pieces: 0 }
      parts.push(part)
      dropOldest()
    }
    return { file, part }
  }

  function dropOldest(): void {
    let bytes = parts.reduce((sum, part) => sum + part.fileBytes, 0)
    const isOver = (oldest: Part) =>
      bytes - oldest.fileBytes >= limits.processOutputBytes || parts.length > MAX_PARTS
    while (parts[0] && isOver(parts[0])) {
      const [oldest] = parts.splice(0, 1)
      bytes -= oldest?.fileBytes ?? 0
      if (oldest) unlinkIfThere(pathOf(directory, oldest.start))
    }
  }

  return {
    append({ stream, data }) {
      if (data.length === 0) return
      const target = partToWrite()
      const { file, part } = target
      if (open?.stream !== stream) {
        open = { stream, at: part.fileBytes, length: 0 }
        part.fileBytes += HEADER_BYTES
        part.pieces += 1
      }
      open.length += data.length
      const header = Buffer.allocUnsafe(HEADER_BYTES)
      header.writeUInt8(streams.indexOf(stream), 0)
      header.writeUInt32BE(open.length, 1)
      try {
        writeSync(file, header, 0, HEADER_BYTES, open.at)
        writeSync(file, data, 0, data.length, part.fileBytes)
      } catch (error) {
        // The disk may be full: the incomplete piece must not be read.
        ftruncateSync(file, part.fileBytes)
        close()
        throw error
      }
      part.bytes += data.length
      part.fileBytes += data.length
    },
    bounds: () => ({ from: parts[0]?.start ?? 0, to: to() }),
    read(after, maxBytes) {
      const found: Found[] = []
      let left = maxBytes
      for (const part of parts) {
        if (part.start + part.bytes <= after) continue
        for (const piece of piecesOf(directory, part)) {
          if (piece.end <= after) continue
          const begin = Math.max(piece.end - piece.data.length, after)
          const data = piece.data.subarray(piece.data.length - (piece.end - begin)).subarray(0, left)
          if (data.length === 0 || !add(found, piece.stream, data, begin)) return found.map(joined)
          left -= data.length
        }
      }
      return found.map(joined)
    },
    close,
  }
}

type Found = { stream: ExecOutput['stream']; chunks: Buffer[]; end: number }

/** Appends to the last piece if that continues. Returns false if there are as many as allowed. */
function add(found: Found[], stream: ExecOutput['stream'], data: Buffer, begin: number): boolean {
  const before = found.at(-1)
  if (before?.stream === stream && before.end === begin) {
    before.chunks.push(data)
    before.end += data.length
    return true
  }
  if (found.length === limits.processPagePieces) return false
  found.push({ stream, chunks: [data], end: begin + data.length })
  return true
}

function joined({ stream, chunks, end }: Found): ProcessOutput {
  return { stream, data: Buffer.concat(chunks), end }
}

function listParts(directory: string): Part[] {
  const starts = namesIn(directory)
    .flatMap((name) => /^(\d{1,15})\.out$/.exec(name)?.[1] ?? [])
    .map(Number)
    .toSorted((a, b) => a - b)
  return starts.map((start) => {
    const part = { start, bytes: 0, fileBytes: 0, pieces: 0 }
    for (const { data } of piecesOf(directory, part)) {
      part.bytes += data.length
      part.fileBytes += HEADER_BYTES + data.length
    }
    return part
  })
}

/** Reads a whole file, since it is small; an incomplete piece is returned as far as it goes. */
function piecesOf(directory: string, { start }: Pick<Part, 'start'>): ProcessOutput[] {
  const content = readIfThere(pathOf(directory, start))
  const pieces: ProcessOutput[] = []
  let end = start
  for (let at = 0; at + HEADER_BYTES < content.length; ) {
    const stream = streams[content.readUInt8(at)] ?? 'stdout'
    const length = content.readUInt32BE(at + 1)
    const data = content.subarray(at + HEADER_BYTES, at + HEADER_BYTES + length)
    at += HEADER_BYTES + length
    end += data.length
    pieces.push({ stream, data, end })
  }
  return pieces
}

function endOf(part: Part | undefined): number {
  return part ? part.start + part.bytes : 0
}

function pathOf(directory: string, start: number): string {
  return join(directory, `${start}.out`)
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

function readIfThere(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch {
    return Buffer.alloc(0)
  }
}

function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // It is already gone.
  }
}
