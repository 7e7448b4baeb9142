// A line of one stream that is not finished yet: conmon writes a long line as several rows, and cuts it at any byte, so
// that a character can begin in one row and end in the next.

import { wholeLength } from '../../../lib/utf8.ts'
import type { LogRow } from './line.ts'
import type { Position } from './parts.ts'

/**
 * `text`: the characters that are whole; `rest`: the bytes after them. Its rows begin at `begin`, after the bytes
 * `before` of a character that the end of the piece before cuts.
 */
export type OpenLine = { text: string; rest: Buffer; at: Date; begin: Position; before: Buffer }

export const NOTHING: Buffer = Buffer.alloc(0)

export function newLine(begin: Position, before: Buffer): Omit<OpenLine, 'at'> {
  return { text: '', rest: before, begin, before }
}

export function withRow({ text, rest, begin, before }: Omit<OpenLine, 'at'>, row: LogRow): OpenLine {
  const bytes = rest.length === 0 ? row.text : Buffer.concat([rest, row.text])
  const whole = row.partial ? wholeLength(bytes) : bytes.length
  return {
    text: text + bytes.toString('utf8', 0, whole),
    // A copy: the row's own bytes belong to a buffer of the whole read.
    rest: Buffer.from(bytes.subarray(whole)),
    at: row.at,
    begin,
    before,
  }
}

/** The text of a line that ends here, because its run does. */
export function textAtEnd(line: OpenLine): string {
  return line.text + line.rest.toString('utf8')
}
