// The few messages of PostgreSQL's protocol that the gateway reads and writes itself: the greeting up to the start
// of a session, and how a session is refused or ended. Pure. (PostgreSQL's documentation: "Message Formats".)

/** Eight bytes: their number, then what is asked for. */
export const GREETING_BYTES = 8
const askedInGreeting = { tls: 80_877_103, gss: 80_877_104 }
const CANCEL = 80_877_102
const CANCEL_BYTES = { min: 16, max: 16 + 252 }
const STARTUP_BYTES = { min: 9, max: 10_000 }
const MAJOR_VERSION = 3

/** What a client asks for before anything else: TLS, an encryption we do not have, or a session without either. */
export function readGreeting(bytes: Buffer): keyof typeof askedInGreeting | 'session' | 'unknown' {
  if (bytes.length < GREETING_BYTES) return 'unknown'
  const asked = bytes.readInt32BE(4)
  if (bytes.readInt32BE(0) === GREETING_BYTES) {
    if (asked === askedInGreeting.tls) return 'tls'
    if (asked === askedInGreeting.gss) return 'gss'
  }
  return asked >> 16 === MAJOR_VERSION || asked === CANCEL ? 'session' : 'unknown'
}

/** The first message once TLS is there: the start of a session, or all of a request to cancel what another does. */
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

/** An error that ends the session, as the server itself would say it. */
export function fatalError(code: string, message: string, hint?: string): Buffer {
  const fields = [`SFATAL`, `VFATAL`, `C${code}`, `M${message}`, ...(hint === undefined ? [] : [`H${hint}`])]
  const body = Buffer.from(`${fields.join('\0')}\0\0`)
  const head = Buffer.alloc(5, 'E')
  head.writeInt32BE(4 + body.length, 1)
  return Buffer.concat([head, body])
}

/** `not-ready`: the server has just been started, and takes no sessions yet (57P03). */
export function readFirstReply(bytes: Buffer): 'more' | 'ready' | 'not-ready' {
  if (bytes.length === 0) return 'more'
  if (bytes[0] !== 0x45 /* E */) return 'ready'
  if (bytes.length < 5 || bytes.length < 1 + bytes.readInt32BE(1))
    return bytes.length < 4096 ? 'more' : 'ready'
  return bytes.includes('\0C57P03\0') ? 'not-ready' : 'ready'
}

/** ReadyForQuery is the last thing a server says before it waits for its client. */
export function endsReady(lastBytes: Buffer): boolean {
  const end = lastBytes.subarray(-6)
  return end.length === 6 && end[0] === 0x5a /* Z */ && end.readInt32BE(1) === 5
}
