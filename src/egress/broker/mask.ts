// Keeps the values of secrets out of what their hosts answer: each byte of one becomes an asterisk, so that lengths stay. Every
// byte that lies in a value is covered, in each of the ways that it may be written (patterns.ts, written.ts), also where two
// overlap or one is the beginning of another, and no matter how the answer is cut into pieces
// (decisions/brokered-secrets.md).

import { Transform } from 'node:stream'
import type { Turn } from '../shares.ts'
import { Index, indexOf, isLong, textOf } from './patterns.ts'
import type { Header } from './put-secrets.ts'
import { Budget, type Place, Search } from './search.ts'

export type Mask = {
  /** Of a part of a head. */
  text: (value: string) => string
  /** For a body. */
  stream: (turn: Turn) => Transform
}

const ASTERISK = '*'
/**
 * A message may end with what is the beginning of a value by chance, and the next one come only after its answer. So few bytes
 * go after a moment, and if they were the beginning, the rest of the value is still covered.
 */
const RELEASED_BYTES = 8
const HOLD_MS = 20

/** Returns null if there is nothing to look for. `values`: visible ASCII. `sent`: other texts that a value was sent in. */
export function maskOf(values: readonly string[], sent: readonly string[] = []): Mask | null {
  return maskBy(indexOf(values), sent)
}

/** For one answer. */
export function maskBy(index: Index | null, sent: readonly string[]): Mask | null {
  const own = [...new Set(sent)].filter(isLong).map(textOf)
  const all = own.length === 0 ? index : new Index(own, index)
  if (all === null) return null
  const budget = new Budget()
  return {
    text: (value) => {
      const bytes = Buffer.from(value, 'latin1')
      const { places } = new Search(all, budget).find(bytes, true)
      if (places.length === 0) return value
      cover(bytes, places)
      return bytes.toString('latin1')
    },
    stream: (turn) => maskStream(new Search(all, budget), turn),
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

function maskStream(search: Search, turn: Turn): Transform {
  /** The bytes that may be the beginning of a value, as they came. All else is sent at once. */
  let held: Buffer = Buffer.alloc(0)
  /** How many of them were sent all the same. */
  let released = 0
  /** The places of values in them and behind them; some began before. */
  let covered: Place[] = []
  let timer: NodeJS.Timeout | undefined

  /** Returns a copy of what is held and was not sent. */
  const rest = (places: readonly Place[]): Buffer => {
    const bytes = Buffer.from(held)
    cover(bytes, [...places, ...covered])
    return bytes.subarray(released)
  }
  const release = () => {
    stream.push(rest([]))
    released = held.length
  }
  const take = (chunk: Buffer): Buffer => {
    const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    const { places, ready } = search.find(bytes, false)
    const found = [...covered, ...places]
    const sent = bytes.subarray(0, ready)
    cover(sent, found)
    held = bytes.subarray(ready)
    covered = found.flatMap(({ from, to }) => (to > ready ? [{ from: from - ready, to: to - ready }] : []))
    const unsent = sent.subarray(released)
    released = Math.max(0, released - ready)
    if (held.length > released && held.length <= RELEASED_BYTES) timer = setTimeout(release, HOLD_MS)
    return unsent
  }
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      clearTimeout(timer)
      const goOn = () => {
        if (!stream.destroyed) done(null, take(chunk))
      }
      const wait = turn(chunk.length)
      if (wait === null) goOn()
      else void wait.then(goOn)
    },
    flush(done) {
      clearTimeout(timer)
      done(null, rest(search.find(held, true).places))
    },
    destroy(error, done) {
      clearTimeout(timer)
      done(error)
    },
  })
  return stream
}

/** Places may begin before the bytes and go on behind them. */
function cover(bytes: Buffer, places: readonly Place[]): void {
  for (const { from, to } of places)
    if (from < bytes.length) bytes.fill(ASTERISK, Math.max(from, 0), Math.min(to, bytes.length))
}
