// The texts that an answer is searched for, and the index by which a place is dismissed after a look at two bytes. A pattern
// has no text of its own: its characters are computed from the value, so that neither the length of values nor the number
// of patterns costs memory or time before they are met (decisions/brokered-secrets.md).

import { beginsEscape, referenceNames } from './written.ts'

/** `base64` may have line breaks within, and either alphabet; `hex` colons too, and either case. */
type Kind = 'text' | 'base64' | 'hex'

export type Pattern = { kind: Kind; length: number; at: (index: number) => number }

/** Shorter ones are words that answers may have for other reasons. */
const PATTERN_MIN_LENGTH = 16

/** `values`: visible ASCII, of which short ones are not looked for. */
export function patternsOf(values: readonly string[]): Pattern[] {
  return [...new Set(values)].filter(isLong).flatMap((value) => {
    const text = textOf(value)
    const once = encodingsOf(text)
    const broken = [hexOf(text), ...once]
    return [text, ...broken, ...broken.map(behindItsBeginning), ...once.flatMap(encodingsOf)]
  })
}

/** What is looked for is the same in all answers to a machine until its rules change. Null: nothing. */
export function indexOf(values: readonly string[]): Index | null {
  const patterns = patternsOf(values)
  return patterns.length === 0 ? null : new Index(patterns)
}

export function isLong({ length }: string): boolean {
  return length >= PATTERN_MIN_LENGTH
}

export function textOf(value: string): Pattern {
  return { kind: 'text', length: value.length, at: (index) => value.charCodeAt(index) }
}

function hexOf(of: Pattern): Pattern {
  const at = (index: number) => HEX.charCodeAt((of.at(index >> 1) >> (index % 2 === 0 ? 4 : 0)) & 15)
  return { kind: 'hex', length: 2 * of.length, at }
}

/** The characters of base64 that say nothing of what is before and behind, for each place that it may begin at. */
function encodingsOf(of: Pattern): Pattern[] {
  return [0, 1, 2].map((before): Pattern => {
    const first = Math.ceil((before * 8) / 6)
    const at = (index: number) => {
      const bit = 6 * (first + index) - 8 * before
      const two = (of.at(bit >> 3) << 8) | (bit % 8 > 2 ? of.at((bit >> 3) + 1) : 0)
      return BASE64.charCodeAt((two >> (10 - (bit % 8))) & 63)
    }
    return { kind: 'base64', length: Math.floor(((before + of.length) * 8) / 6) - first, at }
  })
}

/** Where a line break lies in the first characters, the rest is found. */
function behindItsBeginning({ kind, length, at }: Pattern): Pattern {
  return { kind, length: length - UNBROKEN, at: (index) => at(UNBROKEN + index) }
}

/** A line break after fewer characters is none within a pattern: most lines end with what one may begin with. */
const UNBROKEN = 4
const HEX = '0123456789abcdef'
const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** Whether a character stands for one of a pattern. */
export function accepts(kind: Kind, wanted: number, code: number): boolean {
  if (code === wanted) return true
  if (kind === 'hex') return wanted > 0x60 && code === wanted - 0x20
  // A form writes a blank as a plus.
  if (kind === 'text') return wanted === 0x20 && code === 0x2b
  return (wanted === 0x2b && code === 0x2d) || (wanted === 0x2f && code === 0x5f)
}

/** Whether a character may stand between those of a pattern. */
export function isBetween(kind: Kind, index: number, code: number): boolean {
  if (kind === 'hex' && code === 0x3a) return index > 0 && index % 2 === 0
  return kind !== 'text' && index >= UNBROKEN && breaks.includes(code)
}

const breaks = [0x09, 0x0a, 0x0d, 0x20]
const escaping = Array.from({ length: 256 }, (_, code) => code).filter(beginsEscape)

export class Index {
  /** A bit for each two bytes that a pattern may begin with. */
  readonly pairs: Uint32Array
  readonly #begins: Uint8Array
  readonly #byPair = new Map<number, Pattern[]>()
  readonly #base: Index | null
  /** The characters of the longest. */
  readonly longest: number

  /** `base`: whose patterns are looked for too. */
  constructor(patterns: readonly Pattern[], base: Index | null = null) {
    this.#base = base
    this.pairs = base === null ? new Uint32Array(65_536 / 32) : base.pairs.slice()
    this.#begins = base === null ? new Uint8Array(256) : base.#begins.slice()
    this.longest = patterns.reduce((most, { length }) => Math.max(most, length), base?.longest ?? 0)
    for (const pattern of patterns) this.#add(pattern)
  }

  mayBegin(code: number): boolean {
    return this.#begins[code] === 1
  }

  /** The patterns that begin with two characters. */
  beginningWith(pair: number): readonly Pattern[] {
    const others = this.#base?.beginningWith(pair) ?? []
    const own = this.#byPair.get(pair) ?? []
    return others.length === 0 ? own : [...own, ...others]
  }

  #add(pattern: Pattern): void {
    const { kind } = pattern
    const seconds = spellings(kind, pattern.at(1))
    for (const code of escaping) this.#begins[code] = 1
    for (const first of spellings(kind, pattern.at(0))) {
      this.#begins[first] = 1
      for (const second of seconds) {
        const pair = first * 256 + second
        this.#mark(pair)
        const list = this.#byPair.get(pair) ?? []
        this.#byPair.set(pair, list)
        list.push(pattern)
      }
      for (const second of escaping) this.#mark(first * 256 + second)
      for (const pair of escapedBeginnings(first)) this.#mark(pair)
    }
  }

  #mark(pair: number): void {
    this.pairs[pair >>> 5] = (this.pairs[pair >>> 5] ?? 0) | (1 << (pair & 31))
  }
}

/** The characters that stand for one of a pattern. */
function spellings(kind: Kind, wanted: number): number[] {
  return [...new Set([wanted, wanted - 0x20, 0x2b, 0x2d, 0x5f])].filter((code) => accepts(kind, wanted, code))
}

/** The first two bytes of escapes that stand for a character, and of those around another escape. */
function escapedBeginnings(code: number): number[] {
  const high = HEX[code >> 4] ?? ''
  const names = Object.entries(referenceNames)
    .filter(([, character]) => character.charCodeAt(0) === code)
    .map(([name]) => `&${name[0] ?? ''}`)
  const itself = /[A-Za-z0-9]/.test(String.fromCharCode(code)) ? [] : [`\\${String.fromCharCode(code)}`]
  return [`%${high}`, `=${high}`, ...itself, ...names, ...AROUND].map(
    (two) => two.charCodeAt(0) * 256 + two.charCodeAt(1),
  )
}

const AROUND = '\\u \\x \\\\ \\% \\& \\= &# &a &b &e &p %2 %3 %5 =2 =3 =5'.split(' ')
