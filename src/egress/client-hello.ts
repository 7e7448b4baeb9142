// Reads the name that a TLS client asks for from its first message (RFC 8446, 6066). Pure, and never throws: the bytes
// are untrusted. The message may come in several records, and the records in several segments.

export type Hello =
  /** It is not whole yet. */
  | { kind: 'more' }
  | { kind: 'hello'; name: string }
  | { kind: 'refused'; reason: 'no_tls' | 'no_name' | 'too_large' }

export const HELLO_MAX_BYTES = 16 * 1024

const HANDSHAKE = 22
const CLIENT_HELLO = 1
const SERVER_NAME = 0
const HOST_NAME = 0
const RECORD_HEADER = 5
const MESSAGE_HEADER = 4

/** `bytes`: all that the client has sent so far. */
export function readHello(bytes: Buffer): Hello {
  const message = messageIn(bytes)
  if (message === 'more') return bytes.length >= HELLO_MAX_BYTES ? refused('too_large') : { kind: 'more' }
  if (!Buffer.isBuffer(message)) return refused(message)
  const name = nameIn(message)
  return name === null ? refused('no_name') : { kind: 'hello', name }
}

/** Puts the first handshake message together from its records. */
function messageIn(bytes: Buffer): Buffer | 'more' | 'no_tls' | 'too_large' {
  const parts: Buffer[] = []
  let have = 0
  let at = 0
  for (;;) {
    if (bytes.length < at + RECORD_HEADER) return startsLikeTls(bytes.subarray(at)) ? 'more' : 'no_tls'
    const length = bytes.readUInt16BE(at + 3)
    if (!startsLikeTls(bytes.subarray(at)) || length === 0) return 'no_tls'
    const part = bytes.subarray(at + RECORD_HEADER, at + RECORD_HEADER + length)
    parts.push(part)
    have += part.length
    if (have >= MESSAGE_HEADER) {
      const start = Buffer.concat(parts)
      if (start.readUInt8(0) !== CLIENT_HELLO) return 'no_tls'
      const end = MESSAGE_HEADER + start.readUIntBE(1, 3)
      if (end > HELLO_MAX_BYTES) return 'too_large'
      if (have >= end) return start.subarray(MESSAGE_HEADER, end)
    }
    if (part.length < length) return 'more'
    at += RECORD_HEADER + length
  }
}

function startsLikeTls(record: Buffer): boolean {
  return (record.length < 1 || record[0] === HANDSHAKE) && (record.length < 2 || record[1] === 3)
}

/** Returns the host name of a ClientHello; null if it has none, more than one, or is malformed. */
function nameIn(message: Buffer): string | null {
  const reader = readerOf(message)
  reader.skip(2 + 32) // version and random
  reader.skip(reader.number(1)) // session
  reader.skip(reader.number(2)) // cipher suites
  reader.skip(reader.number(1)) // compression methods
  const extensions = readerOf(reader.bytes(reader.number(2)))
  if (reader.failed()) return null
  const found: (string | null)[] = []
  while (extensions.left() > 0 && !extensions.failed()) {
    const type = extensions.number(2)
    const content = extensions.bytes(extensions.number(2))
    if (type === SERVER_NAME && !extensions.failed()) found.push(hostIn(content))
  }
  return extensions.failed() || found.length !== 1 ? null : (found[0] ?? null)
}

function hostIn(content: Buffer): string | null {
  const list = readerOf(content)
  const names = readerOf(list.bytes(list.number(2)))
  const type = names.number(1)
  const name = names.bytes(names.number(2))
  if (list.failed() || names.failed() || list.left() > 0 || names.left() > 0 || type !== HOST_NAME)
    return null
  return name.length > 0 && name.every((byte) => byte > 0x20 && byte < 0x7f) ? name.toString('latin1') : null
}

/** After a read beyond the end all others give nothing, and `failed` says so. */
function readerOf(bytes: Buffer) {
  let at = 0
  let failed = false
  const take = (length: number): Buffer => {
    if (failed || at + length > bytes.length) {
      failed = true
      return Buffer.alloc(0)
    }
    at += length
    return bytes.subarray(at - length, at)
  }
  return {
    bytes: take,
    skip: (length: number) => void take(length),
    number: (length: 1 | 2): number => {
      const taken = take(length)
      return taken.length === length ? taken.readUIntBE(0, length) : 0
    },
    left: () => bytes.length - at,
    failed: () => failed,
  }
}

function refused(reason: 'no_tls' | 'no_name' | 'too_large'): Hello {
  return { kind: 'refused', reason }
}
