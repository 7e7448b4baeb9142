// Strict JSON: refuses what two parsers could read differently, because a policy checked on one reading must not be
// bypassed by another.

import { type Issue, validation } from '../../contract/errors.ts'

/** Deeper than any body of the contract, and far below the recursion limit. */
const MAX_DEPTH = 32

/** More than any body of the contract has. A parsed value takes up to a thousand times the two bytes of its text. */
const MAX_VALUES = 4000

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Throws `validation` unless the bytes are exactly one well-formed, unambiguous JSON value. */
export function parseJson(bytes: Buffer): unknown {
  const text = decode(bytes)
  const members = countMembers(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw refused('', 'the body is not valid JSON')
  }
  // The parser keeps the last of two equal keys, so the object has fewer members than the text.
  if (check(value) !== members) throw refused('', 'an object has the same key twice')
  return value
}

function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw refused('', 'the body is not valid UTF-8')
  }
}

type Visit = { value: unknown; path: Path; depth: number }
type Path = { key: string; parent: Path } | null

/** Refuses valid JSON that no client sends on purpose. Returns the number of members of all objects. */
function check(root: unknown): number {
  let members = 0
  const pending: Visit[] = [{ value: root, path: null, depth: 0 }]
  for (let visit = pending.pop(); visit; visit = pending.pop()) {
    const { value, path, depth } = visit
    if (typeof value === 'string' && !value.isWellFormed()) {
      throw refused(spell(path), 'half of a surrogate pair is not a character')
    }
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw refused(spell(path), 'the number is too large')
    }
    if (typeof value !== 'object' || value === null) continue
    if (depth >= MAX_DEPTH) throw refused('', `the body is nested deeper than ${MAX_DEPTH} levels`)
    const entries = Object.entries(value)
    if (!Array.isArray(value)) members += entries.length
    for (const [key, item] of entries) {
      if (key === '__proto__' || !key.isWellFormed()) throw refused(spell(path), 'a key is not allowed')
      pending.push({ value: item, path: { key, parent: path }, depth: depth + 1 })
    }
  }
  return members
}

function spell(path: Path): string {
  const keys: string[] = []
  for (let at = path; at; at = at.parent) keys.unshift(at.key)
  return keys.join('.').slice(0, 200)
}

/**
 * Returns the number of members of all objects in a valid JSON text: one for each colon outside of strings. Throws
 * `validation` for too many values, each of which follows a comma or an opening bracket.
 */
function countMembers(text: string): number {
  let members = 0
  let values = 0
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '"') at = endOfString(text, at)
    else if (character === ':') members++
    else if (character === ',' || character === '[' || character === '{') values++
    if (values > MAX_VALUES) throw refused('', `the body holds more than ${MAX_VALUES} values`)
  }
  return members
}

/**
 * Returns the index of the quote that closes the string opened at `start`: the next quote after an even number of
 * backslashes.
 */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length
}

function refused(path: string, message: string): Error {
  const issue: Issue = { path, message }
  return validation([issue])
}
