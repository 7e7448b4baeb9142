// Keeps the values of secrets out of what their hosts answer: each byte of one becomes an asterisk, so that lengths stay. It
// finds a value as it was sent, and not in another form, such as compressed (decision 166).

import { type Readable, Transform } from 'node:stream'
import type { Header } from './put-secrets.ts'

export type Mask = {
  /** Of a header. */
  text: (value: string) => string
  /** For a body. */
  stream: () => Transform
}

/** Shorter ones are words that answers may have for other reasons. */
const MASKED_MIN_LENGTH = 16
const ASTERISK = '*'

/** Returns null if there is nothing to look for. `values`: visible ASCII. */
export function maskOf(values: readonly string[]): Mask | null {
  const hidden = values.filter(({ length }) => length >= MASKED_MIN_LENGTH)
  // A longer one may begin with a shorter one.
  hidden.sort((one, other) => other.length - one.length)
  if (hidden.length === 0) return null
  return {
    text: (value) =>
      hidden.reduce((text, each) => text.replaceAll(each, ASTERISK.repeat(each.length)), value),
    stream: () => maskStream(hidden.map((each) => Buffer.from(each, 'latin1'))),
  }
}

/** Headers of an answer, without values. */
export function masked(headers: Header[], mask: Mask | null): Header[] {
  return mask === null ? headers : headers.map(([name, value]) => [name, mask.text(value)])
}

/** A body, without values. */
export function through(mask: Mask | null, body: Readable): Readable {
  return mask === null ? body : body.pipe(mask.stream())
}

function maskStream(hidden: readonly Buffer[]): Transform {
  let held: Buffer = Buffer.alloc(0)
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      for (const each of hidden) cover(bytes, each)
      // Only what may be the beginning of a value waits for more, so that what streams is not delayed.
      const waiting = Math.max(...hidden.map((each) => begunIn(bytes, each)))
      held = bytes.subarray(bytes.length - waiting)
      done(null, bytes.subarray(0, bytes.length - waiting))
    },
    flush(done) {
      done(null, held)
    },
  })
}

function cover(bytes: Buffer, value: Buffer): void {
  for (let at = bytes.indexOf(value); at >= 0; at = bytes.indexOf(value, at + value.length))
    bytes.fill(ASTERISK, at, at + value.length)
}

/** How many bytes at the end are the beginning of a value. */
function begunIn(bytes: Buffer, value: Buffer): number {
  const first = value[0] ?? 0
  const tail = bytes.subarray(Math.max(0, bytes.length - value.length + 1))
  for (let at = tail.indexOf(first); at >= 0; at = tail.indexOf(first, at + 1))
    if (tail.subarray(at).equals(value.subarray(0, tail.length - at))) return tail.length - at
  return 0
}
