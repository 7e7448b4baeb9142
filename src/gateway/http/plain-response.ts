// Reads the responses that nearly every server sends: a head in the plainest form of RFC 9112, and a body with a length
// or in chunks. Pure. A head in any other form is not refused here: Node's own parser reads it (see replayed-connection.ts).

/** How a body ends. */
export type Framing = { kind: 'length'; bytes: number } | { kind: 'chunked' }

export type PlainHead = {
  status: number
  reason: string
  /** Alternating names and values, as received. */
  rawHeaders: string[]
  framing: Framing
  /** How long the connection may be kept for another request; 0: it may not. */
  keptMs: number
}

/** Bounds of what a line may have, beside those of the connection. */
const MAX_CHUNK_LINE = 4096
const MAX_TRAILER_BYTES = 16 * 1024

// Every pattern takes time in proportion to its text, whatever a unit sends.
const STATUS_LINE = /^HTTP\/1\.([01]) ([2-5]\d\d)(?: ([\t\x20-\x7e\x80-\xff]*))?$/
const FIELD_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const CHUNK_SIZE = /^([0-9a-fA-F]{1,8})(?:;[\t\x20-\x7e\x80-\xff]*)?$/

/**
 * `text`: from the status line to the last header's line end, as Latin-1. `isHead`: it answers HEAD. Returns null if it
 * is not in plain form.
 */
export function parsePlainHead(
  text: string,
  { keptMs, isHead }: { keptMs: number; isHead: boolean },
): PlainHead | null {
  const lineEnd = text.indexOf('\r\n')
  const [, minor, code, reason = ''] = STATUS_LINE.exec(text.slice(0, lineEnd)) ?? []
  if (code === undefined) return null
  const status = Number(code)
  const rawHeaders = parseFields(text, lineEnd + 2)
  if (!rawHeaders) return null
  const head: PlainHead = { status, reason, rawHeaders, framing: { kind: 'length', bytes: -1 }, keptMs }
  if (minor === '0') head.keptMs = 0
  let hasLength = false
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const value = rawHeaders[at + 1] ?? ''
    switch (framingFieldOf(rawHeaders[at] ?? '')) {
      case 'content-length':
        if (hasLength || head.framing.kind === 'chunked' || !/^\d{1,15}$/.test(value)) return null
        hasLength = true
        head.framing = { kind: 'length', bytes: Number(value) }
        break
      case 'transfer-encoding':
        if (hasLength || head.framing.kind === 'chunked' || minor === '0') return null
        if (value.toLowerCase() !== 'chunked') return null
        head.framing = { kind: 'chunked' }
        break
      case 'connection':
        if (/close/i.test(value)) head.keptMs = 0
        break
      case 'keep-alive':
        head.keptMs = Math.min(head.keptMs, hintedMs(value))
        break
    }
  }
  // These have no body, whatever their headers say (RFC 9112, 6.3).
  if (isHead || status === 204 || status === 304) return { ...head, framing: { kind: 'length', bytes: 0 } }
  // A body that ends with its connection is for Node's parser.
  return head.framing.kind === 'length' && !hasLength ? null : head
}

const framingFields = new Map(
  ['content-length', 'transfer-encoding', 'connection', 'keep-alive'].map((name) => [name, name]),
)

/** The field in lower case if it matters for the framing. Most names are told apart by their length. */
function framingFieldOf(name: string): string | undefined {
  if (name.length !== 14 && name.length !== 17 && name.length !== 10) return undefined
  return framingFields.get(name.toLowerCase())
}

/** A server that names a time closes its connection then: the last second of it is left out. */
function hintedMs(value: string): number {
  const seconds = /(?:^|[,\s])timeout=(\d{1,6})/i.exec(value)?.[1]
  return seconds === undefined ? Infinity : Math.max(0, (Number(seconds) - 1) * 1000)
}

/** Returns alternating names and values of the lines from there on; null if one is not a header line. */
function parseFields(text: string, from: number): string[] | null {
  const fields: string[] = []
  for (let at = from; at < text.length; ) {
    const end = text.indexOf('\r\n', at)
    const colon = text.indexOf(':', at)
    if (end < 0 || colon < 0 || colon > end) return null
    const name = text.slice(at, colon)
    const value = text.slice(colon + 1, end)
    if (!FIELD_NAME.test(name) || !FIELD_VALUE.test(value)) return null
    fields.push(name, withoutSpaces(value))
    at = end + 2
  }
  return fields
}

function withoutSpaces(value: string): string {
  let from = 0
  let to = value.length
  while (from < to && isSpace(value.charCodeAt(from))) from += 1
  while (to > from && isSpace(value.charCodeAt(to - 1))) to -= 1
  return value.slice(from, to)
}

const isSpace = (code: number) => code === 0x20 || code === 0x09

/** Reads a body. `read` returns the number of bytes that belong to it, or null if it is malformed. */
export type BodyReader = {
  isDone: boolean
  /** Alternating names and values, once it is done. */
  rawTrailers: string[]
  read(bytes: Buffer, sink: BodySink): number | null
}

export type BodySink = { onBody(part: Buffer): void }

export function createBodyReader(framing: Framing): BodyReader {
  return framing.kind === 'length' ? new LengthReader(framing.bytes) : new ChunkReader()
}

class LengthReader implements BodyReader {
  readonly rawTrailers: string[] = []
  #left: number

  constructor(bytes: number) {
    this.#left = bytes
  }

  get isDone(): boolean {
    return this.#left === 0
  }

  read(bytes: Buffer, sink: BodySink): number {
    const part = bytes.length <= this.#left ? bytes : bytes.subarray(0, this.#left)
    this.#left -= part.length
    if (part.length > 0) sink.onBody(part)
    return part.length
  }
}

class ChunkReader implements BodyReader {
  isDone = false
  rawTrailers: string[] = []
  /** What the next bytes are: a line, or as many bytes of a chunk as are left. */
  #awaits: 'size' | 'data' | 'data-end' | 'trailer' = 'size'
  #left = 0
  /** The part of a line that has come, as Latin-1. */
  #line = ''
  #trailers = ''

  read(bytes: Buffer, sink: BodySink): number | null {
    let at = 0
    while (at < bytes.length && !this.isDone) {
      if (this.#awaits === 'data') {
        const part = bytes.subarray(at, at + this.#left)
        this.#left -= part.length
        at += part.length
        if (this.#left === 0) this.#awaits = 'data-end'
        sink.onBody(part)
        continue
      }
      const lineFeed = bytes.indexOf(0x0a, at)
      const end = lineFeed < 0 ? bytes.length : lineFeed + 1
      if (this.#line.length + end - at > MAX_CHUNK_LINE) return null
      this.#line += bytes.toString('latin1', at, end)
      at = end
      if (lineFeed >= 0 && !this.#endLine()) return null
    }
    return at
  }

  /** Returns false if the line is malformed. */
  #endLine(): boolean {
    const line = this.#line
    this.#line = ''
    if (!line.endsWith('\r\n')) return false
    const text = line.slice(0, -2)
    switch (this.#awaits) {
      case 'size': {
        const size = CHUNK_SIZE.exec(text)?.[1]
        if (size === undefined) return false
        this.#left = Number.parseInt(size, 16)
        this.#awaits = this.#left === 0 ? 'trailer' : 'data'
        return true
      }
      case 'data-end':
        this.#awaits = 'size'
        return text === ''
      default:
        return this.#endTrailer(line)
    }
  }

  #endTrailer(line: string): boolean {
    if (line !== '\r\n') {
      this.#trailers += line
      return this.#trailers.length <= MAX_TRAILER_BYTES
    }
    const fields = parseFields(this.#trailers, 0)
    this.isDone = fields !== null
    this.rawTrailers = fields ?? []
    return this.isDone
  }
}
