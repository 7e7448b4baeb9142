// Keeps the values of secrets out of what their hosts answer: each byte of one becomes an asterisk, so that lengths stay. Every
// byte that lies in a form of a value (forms.ts) is covered, also where two overlap or one is the beginning of another, and
// no matter how the answer is cut into pieces (decisions 166 and 171).

import { type Readable, Transform } from 'node:stream'
import { formsOf } from './forms.ts'
import type { Header } from './put-secrets.ts'

export type Mask = {
  /** Of a part of a head. */
  text: (value: string) => string
  /** For a body. */
  stream: () => Transform
}

const ASTERISK = '*'
/**
 * A message may end with what is the beginning of a value by chance, and the next one come only after its answer. So few bytes
 * go after a moment, and if they were the beginning, the rest of the value is still covered.
 */
const RELEASED_BYTES = 8
const HOLD_MS = 20
/** In one piece of an answer. Where there are more, the whole piece is covered: looking on could take forever. */
const MAX_PLACES = 10_000

/** Returns null if there is nothing to look for. `values`: visible ASCII. `sent`: other texts that a value was sent in. */
export function maskOf(values: readonly string[], sent: readonly string[] = []): Mask | null {
  const hidden = formsOf(values, sent).map((form) => Buffer.from(form, 'latin1'))
  if (hidden.length === 0) return null
  return {
    text: (value) => {
      const bytes = Buffer.from(value, 'latin1')
      const found = findIn(bytes, hidden)
      if (found.length === 0) return value
      cover(bytes, found)
      return bytes.toString('latin1')
    },
    stream: () => maskStream(hidden),
  }
}

/** Headers of an answer, without values: a host may make a name of one too. */
export function masked(headers: Header[], mask: Mask | null): Header[] {
  return headers.map(([name, value]) => [maskedText(name, mask), maskedText(value, mask)])
}

/** A part of an answer's head, without values. */
export function maskedText(text: string, mask: Mask | null): string {
  return mask === null ? text : mask.text(text)
}

/** A body, without values. */
export function through(mask: Mask | null, body: Readable): Readable {
  return mask === null ? body : body.pipe(mask.stream())
}

function maskStream(hidden: readonly Buffer[]): Transform {
  /** The bytes that may be the beginning of a value, as they came. All else is sent at once. */
  let held: Buffer = Buffer.alloc(0)
  /** How many of them were sent all the same. */
  let released = 0
  /** How many of them lie in a value that began before them. */
  let covered = 0
  let timer: NodeJS.Timeout | undefined

  /** Returns a copy of what is held and was not sent. */
  const rest = (places: readonly Place[]): Buffer => {
    const bytes = Buffer.from(held)
    cover(bytes, [...places, { from: -1, to: covered }])
    return bytes.subarray(released)
  }
  const release = () => {
    stream.push(rest([]))
    released = held.length
  }
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      clearTimeout(timer)
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      const found = [...findIn(bytes, hidden), { from: -1, to: covered }]
      const ready = bytes.length - Math.max(...hidden.map((each) => begunIn(bytes, each)))
      held = bytes.subarray(ready)
      covered = Math.max(0, ...found.map(({ from, to }) => (from < ready ? to - ready : 0)))
      const sent = bytes.subarray(0, ready)
      cover(sent, found)
      done(null, sent.subarray(released))
      released = Math.max(0, released - ready)
      if (held.length > released && held.length <= RELEASED_BYTES) timer = setTimeout(release, HOLD_MS)
    },
    flush(done) {
      clearTimeout(timer)
      done(null, rest(findIn(held, hidden)))
    },
    destroy(error, done) {
      clearTimeout(timer)
      done(error)
    },
  })
  return stream
}

type Place = { from: number; to: number }

function findIn(bytes: Buffer, hidden: readonly Buffer[]): Place[] {
  const found: Place[] = []
  for (const each of hidden)
    for (let at = bytes.indexOf(each); at >= 0; at = bytes.indexOf(each, at + 1))
      if (found.push({ from: at, to: at + each.length }) > MAX_PLACES) return [{ from: 0, to: bytes.length }]
  return found
}

/** Places may begin before the bytes and go on behind them. */
function cover(bytes: Buffer, places: readonly Place[]): void {
  for (const { from, to } of places)
    if (from < bytes.length) bytes.fill(ASTERISK, Math.max(from, 0), Math.min(to, bytes.length))
}

/** How many bytes at the end are the beginning of a value: the longest. */
function begunIn(bytes: Buffer, value: Buffer): number {
  const first = value[0] ?? 0
  const tail = bytes.subarray(Math.max(0, bytes.length - value.length + 1))
  for (let at = tail.indexOf(first); at >= 0; at = tail.indexOf(first, at + 1))
    if (tail.subarray(at).equals(value.subarray(0, tail.length - at))) return tail.length - at
  return 0
}
