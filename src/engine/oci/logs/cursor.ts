// Where a read of a log continues. As text: where the last line ended, where an unfinished line of the other stream
// began if there is one (`1.2.4096-1.2.512`), and the bytes of a character that the end of a piece of a very long line
// cuts (`1.2.4096_of09f`, for stdout).

import { EngineError } from '../../errors.ts'
import type { LogRow } from './line.ts'
import type { OpenLine } from './open-line.ts'
import { comparePosition, type Position } from './parts.ts'

export type Stream = LogRow['stream']

/**
 * Lines that end up to `end` are not wanted; reading begins at `begin`, the start of an unfinished line. `isOfLine`:
 * the row that ends at `end` ended a line or a piece that was returned. `cut`: bytes of characters that are cut.
 * `broken`: streams whose line began before all that is read.
 */
export type Cursor = {
  end: Position
  begin: Position
  isOfLine: boolean
  cut: ReadonlyMap<Stream, Buffer>
  broken: ReadonlySet<Stream>
}

const letters = { stdout: 'o', stderr: 'e' } as const satisfies Record<Stream, string>

export function formatCursor(end: Position, open: ReadonlyMap<Stream, OpenLine>): string {
  const [begin] = [...open.values()].map((line) => line.begin).sort(comparePosition)
  const positions = begin && comparePosition(begin, end) < 0 ? [end, begin] : [end]
  const cut = [...open].filter(([, { before }]) => before.length > 0)
  return [
    positions.map((at) => `${at.generation}.${at.part}.${at.offset}`).join('-'),
    ...cut.map(([stream, { before }]) => `_${letters[stream]}${before.toString('hex')}`),
  ].join('')
}

export function parseCursor(cursor: string): Cursor {
  const [places = '', ...cut] = cursor.split('_')
  const positions = places.split('-').map(parsePosition)
  const [end, begin = end] = positions
  if (!end || !begin || positions.length > 2 || cut.length > 2) throw badCursor()
  return { end, begin, isOfLine: true, cut: new Map(cut.map(parseCut)), broken: new Set() }
}

function parsePosition(text: string): Position {
  const match = /^(\d{1,9})\.(\d{1,9})\.(\d{1,12})$/.exec(text)
  if (!match) throw badCursor()
  return { generation: Number(match[1]), part: Number(match[2]), offset: Number(match[3]) }
}

function parseCut(text: string): [Stream, Buffer] {
  const match = /^([oe])((?:[0-9a-f]{2}){1,3})$/.exec(text)
  if (!match) throw badCursor()
  return [match[1] === 'o' ? 'stdout' : 'stderr', Buffer.from(match[2] ?? '', 'hex')]
}

function badCursor(): EngineError {
  return new EngineError('bad_cursor', 'The cursor is not one that this machine gave.')
}
