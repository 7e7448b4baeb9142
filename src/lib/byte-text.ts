// Bytes that need not be UTF-8, such as the names of files, as text that keeps all of them: each byte that is no part of a
// character is a lone surrogate (U+DC80 to U+DCFF), as Python has it (PEP 383). JSON and comparisons keep these. Text of
// callers has none, and none may reach the database or an answer: `isWellFormed` tells them apart.

import { isUtf8 } from 'node:buffer'

const ESCAPE = 0xdc00

export function textOfBytes(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString('utf8')
  let text = ''
  for (let at = 0; at < bytes.length; ) {
    const character = bytes.subarray(at, at + lengthOf(bytes[at] ?? 0))
    const isWhole = isUtf8(character)
    text += isWhole ? character.toString('utf8') : String.fromCharCode(ESCAPE + (bytes[at] ?? 0))
    at += isWhole ? character.length : 1
  }
  return text
}

export function bytesOfText(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text)
  const bytesOf = (character: string) => {
    const code = character.codePointAt(0) ?? 0
    return code > ESCAPE && code <= ESCAPE + 0xff ? Buffer.from([code - ESCAPE]) : Buffer.from(character)
  }
  // By characters, so that the two halves of one stay together.
  return Buffer.concat(Array.from(text, bytesOf))
}

/** Of a character in UTF-8, by its first byte. */
function lengthOf(first: number): number {
  if (first < 0xc0) return 1
  if (first < 0xe0) return 2
  return first < 0xf0 ? 3 : 4
}
