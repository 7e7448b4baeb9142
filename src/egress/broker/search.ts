// Searches what arrives in pieces for patterns. Each byte is looked at once, and what has begun goes on with the next piece
// where it stopped, so the work is in proportion to the bytes; the number of patterns hardly matters. What would cost more
// than its budget, as only texts made for it do, is taken for found as a whole.

import { accepts, type Index, isBetween, type Pattern } from './patterns.ts'
import { beginsEscape, codeOf, LEVELS, MORE, nextOf, readAt, softBreakAt } from './written.ts'

export type Place = { from: number; to: number }

/** Of the searches of one answer, in comparisons of a character. */
export class Budget {
  static readonly #MOST = 256 * 1024
  static readonly #FIRST = 32 * 1024
  static readonly #A_BYTE = 4
  left = Budget.#FIRST

  earn(bytes: number): void {
    this.left = Math.min(Budget.#MOST, this.left + Budget.#A_BYTE * bytes)
  }
}

/** A way to read what has come of a pattern: `index` characters of it, up to `at`. */
type Way = { at: number; index: number }
type Begun = { pattern: Pattern; from: number; ways: Way[] }

/** A pattern whose characters take more bytes each is none: what is held back for it must have a bound. */
const BYTES_A_CHARACTER = 16
/** How many comparisons it takes to read one. */
const ESCAPE_COSTS = 8

export class Search {
  readonly #index: Index
  readonly #budget: Budget
  #begun: Begun[] = []
  #looked = 0

  constructor(index: Index, budget: Budget) {
    this.#index = index
    this.#budget = budget
  }

  /**
   * Returns the places of patterns in the bytes, and how many bytes cannot be a part of another one: the next call's begin
   * behind those. `isLast`: nothing more comes.
   */
  find(bytes: Buffer, isLast: boolean): { places: Place[]; ready: number } {
    this.#budget.earn(bytes.length - this.#looked)
    const places: Place[] = []
    const go = (begun: Begun): boolean => {
      if (this.#budget.left < 0) return false
      const outcome = this.#advance(bytes, begun, isLast)
      if (typeof outcome === 'number') places.push({ from: begun.from, to: outcome })
      return outcome === 'more'
    }
    this.#begun = this.#begun.filter(go)
    const looked = this.#look(bytes, isLast, (begun) => {
      if (go(begun)) this.#begun.push(begun)
    })
    if (this.#budget.left < 0) return this.#giveUp(bytes)
    const ready = this.#begun.reduce((least, { from }) => Math.min(least, from), looked)
    this.#looked = looked - ready
    for (const begun of this.#begun) {
      begun.from -= ready
      for (const way of begun.ways) way.at -= ready
    }
    return { places, ready }
  }

  /** What has begun may go on behind these bytes, too. */
  #giveUp({ length }: Buffer): { places: Place[]; ready: number } {
    this.#begun = []
    this.#looked = 0
    this.#budget.left = 0
    return { places: [{ from: 0, to: length + this.#index.longest }], ready: length }
  }

  /** Returns up to where nothing more can begin. */
  #look(bytes: Buffer, isLast: boolean, begin: (begun: Begun) => void): number {
    const { length } = bytes
    const index = this.#index
    for (let at = nextOfPairs(bytes, this.#looked, index.pairs); at < length - 1; ) {
      const patterns = this.#beginning(bytes, at, isLast)
      if (this.#budget.left < 0) return length
      if (patterns === null) return at
      for (const pattern of patterns) begin({ pattern, from: at, ways: [{ at, index: 0 }] })
      at = nextOfPairs(bytes, at + 1, index.pairs)
    }
    const last = Math.max(this.#looked, length - 1)
    return !isLast && last < length && index.mayBegin(bytes[last] ?? 0) ? last : length
  }

  /** Returns the patterns that may begin at a place; null if more bytes are needed to say. */
  #beginning(bytes: Buffer, at: number, isLast: boolean): readonly Pattern[] | null {
    const first = bytes[at] ?? 0
    const second = bytes[at + 1] ?? 0
    this.#budget.left -= 1
    if (!beginsEscape(first) && !beginsEscape(second)) return this.#index.beginningWith(first * 256 + second)
    this.#budget.left -= 2 * ESCAPE_COSTS
    let patterns: readonly Pattern[] = NO_PATTERNS
    const add = (pair: number) => {
      const more = this.#index.beginningWith(pair)
      if (more.length > 0) patterns = [...new Set([...patterns, ...more])]
    }
    const isKnown = eachReading(bytes, at, (one) =>
      eachReading(bytes, nextOf(one), (other) => {
        add(codeOf(one) * 256 + codeOf(other))
        return true
      }),
    )
    return isKnown || isLast ? patterns : null
  }

  /** Returns where the pattern ends, or why that is not known. */
  #advance(bytes: Buffer, begun: Begun, isLast: boolean): number | 'no' | 'more' {
    const { pattern, from, ways } = begun
    const waiting: Way[] = []
    const tried = new Set<number>()
    for (let way = ways.pop(); way !== undefined; way = ways.pop()) {
      const before = way.index
      passPlain(bytes, pattern, way)
      this.#budget.left -= 1 + way.index - before
      if (this.#budget.left < 0) return 'no'
      if (way.index === pattern.length) return way.at
      const place = way.at * 65_536 + way.index
      if (tried.has(place) || way.at - from > BYTES_A_CHARACTER * (way.index + 2)) continue
      tried.add(place)
      this.#budget.left -= beginsEscape(bytes[way.at] ?? 0) ? ESCAPE_COSTS : 0
      if (!readOn(bytes, pattern, { way, ways }) && !isLast) waiting.push(way)
    }
    begun.ways = waiting
    return waiting.length === 0 ? 'no' : 'more'
  }
}

/** The first place from one on whose two bytes are in the index: nearly all bytes are only looked at here. */
function nextOfPairs(bytes: Buffer, from: number, pairs: Uint32Array): number {
  const last = bytes.length - 1
  let pair = bytes[from] ?? 0
  for (let at = from; at < last; at += 1) {
    pair = ((pair & 255) << 8) | (bytes[at + 1] ?? 0)
    if ((((pairs[pair >>> 5] ?? 0) >>> (pair & 31)) & 1) === 1) return at
  }
  return last
}

const NO_PATTERNS: readonly Pattern[] = []

/** What may be read at a place, with and without its escapes. Returns false if the bytes end within one, or a visit does. */
function eachReading(bytes: Buffer, at: number, visit: (read: number) => boolean): boolean {
  let isKnown = true
  let before = MORE
  const most = beginsEscape(bytes[at] ?? 0) ? LEVELS : 0
  for (let level = 0; level <= most; level += 1) {
    const read = readAt(bytes, at, level)
    if (read === MORE) return false
    if (read !== before) isKnown = visit(read) && isKnown
    before = read
  }
  return isKnown
}

/** Most characters are as they are. */
function passPlain(bytes: Buffer, { kind, length, at: wanted }: Pattern, way: Way): void {
  while (way.index < length && way.at < bytes.length) {
    const code = bytes[way.at] ?? 0
    if (beginsEscape(code) || !accepts(kind, wanted(way.index), code)) return
    way.at += 1
    way.index += 1
  }
}

/** Adds the ways to read the next character, the longest last. Returns false if the bytes end before all are known. */
function readOn(bytes: Buffer, pattern: Pattern, { way, ways }: { way: Way; ways: Way[] }): boolean {
  const { at, index } = way
  const wanted = pattern.at(index)
  const isKnown = eachReading(bytes, at, (read) => {
    if (accepts(pattern.kind, wanted, codeOf(read))) ways.push({ at: nextOf(read), index: index + 1 })
    else if (isBetween(pattern.kind, index, codeOf(read))) ways.push({ at: nextOf(read), index })
    return true
  })
  if (!isKnown) return false
  const next = index === 0 ? null : softBreakAt(bytes, at)
  if (next === MORE) return false
  if (next !== null) ways.push({ at: next, index })
  return true
}
