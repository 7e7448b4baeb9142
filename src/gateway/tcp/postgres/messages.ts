// The messages of PostgreSQL's protocol that the gateway itself reads and writes: the start of a session, and how a
// session is refused or ended. Pure. (PostgreSQL's documentation: "Message Formats".)

/** Eight bytes: their length, then the request. */
export const GREETING_BYTES = 8
const askedInGreeting = { tls: 80_877_103, gss: 80_877_104 }
const CANCEL = 80_877_102
const CANCEL_BYTES = { min: 16, max: 16 + 252 }
const STARTUP_BYTES = { min: 9, max: 10_000 }
const MAJOR_VERSION = 3

/** The first request of a client: TLS, GSS encryption, which is not supported, or to continue without. */
export function readGreeting(bytes: Buffer): keyof typeof askedInGreeting | 'session' | 'cancel' | 'unknown' {
  if (bytes.length < GREETING_BYTES) return 'unknown'
  const asked = bytes.readInt32BE(4)
  if (bytes.readInt32BE(0) === GREETING_BYTES) {
    if (asked === askedInGreeting.tls) return 'tls'
    if (asked === askedInGreeting.gss) return 'gss'
  }
  if (asked === CANCEL) return 'cancel'
  return asked >> 16 === MAJOR_VERSION ? 'session' : 'unknown'
}

/** Parses the first message after TLS: the start of a session, or a whole cancel request. */
export function readStartup(bytes: Buffer): 'more' | 'whole' | 'only' | 'wrong' {
  if (bytes.length < GREETING_BYTES) return 'more'
  const length = bytes.readInt32BE(0)
  const asked = bytes.readInt32BE(4)
  const isCancel = asked === CANCEL
  if (!isCancel && asked >> 16 !== MAJOR_VERSION) return 'wrong'
  const { min, max } = isCancel ? CANCEL_BYTES : STARTUP_BYTES
  if (length < min || length > max || bytes.length > length) return 'wrong'
  if (bytes.length < length) return 'more'
  return isCancel ? 'only' : 'whole'
}

/** An error that ends the session, in the server's own format. */
export function fatalError(code: string, message: string, hint?: string): Buffer {
  const fields = [`SFATAL`, `VFATAL`, `C${code}`, `M${message}`, ...(hint === undefined ? [] : [`H${hint}`])]
  const body = Buffer.from(`${fields.join('\0')}\0\0`)
  const head = Buffer.alloc(5, 'E')
  head.writeInt32BE(4 + body.length, 1)
  return Buffer.concat([head, body])
}

/** `not-ready`: the server has just been started, and accepts no sessions yet (57P03). */
export function readFirstReply(bytes: Buffer): 'more' | 'ready' | 'not-ready' {
  if (bytes.length === 0) return 'more'
  if (bytes[0] !== 0x45 /* E */) return 'ready'
  if (bytes.length < 5 || bytes.length < 1 + bytes.readInt32BE(1))
    return bytes.length < 4096 ? 'more' : 'ready'
  return bytes.includes('\0C57P03\0') ? 'not-ready' : 'ready'
}

/** The key in a cancel request, as the server gave it to the session's client. */
export function keyOfCancel(request: Buffer): Buffer {
  return request.subarray(GREETING_BYTES)
}

/** The bytes from the start of a session to its key; more than any server sends. */
const MAX_BYTES_TO_KEY = 16 * 1024

/** Returns the key in what a session's server has sent. Null if there is none. */
export function findBackendKey(bytes: Buffer): Buffer | 'more' | null {
  let at = 0
  while (at + 5 <= bytes.length) {
    const end = at + 1 + bytes.readUInt32BE(at + 1)
    const kind = bytes[at]
    if (kind === 0x5a /* Z */ || end > MAX_BYTES_TO_KEY || end < at + 5) return null
    if (end > bytes.length) return 'more'
    if (kind === 0x4b /* K */) return Buffer.from(bytes.subarray(at + 5, end))
    at = end
  }
  return at > MAX_BYTES_TO_KEY ? null : 'more'
}

/** ReadyForQuery is the last message before a server waits for its client. */
export function endsReady(lastBytes: Buffer): boolean {
  const end = lastBytes.subarray(-6)
  return end.length === 6 && end[0] === 0x5a /* Z */ && end.readInt32BE(1) === 5
}

/** Messages that a server sends unasked: a notification, a notice, a parameter's value. */
export function isNotice(chunk: Buffer): boolean {
  return ['A', 'N', 'S'].includes(chunk.toString('latin1', 0, 1))
}
