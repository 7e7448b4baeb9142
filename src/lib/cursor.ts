// Where a list goes on, as a caller carries it: opaque, so that what it is made of may change. Lists are
// ordered by id, which sorts by creation (ids.ts).

import { type IdKind, isId } from './ids.ts'

export function encodeCursor(id: string): string {
  return Buffer.from(id).toString('base64url')
}

/** The id in a cursor, or null when encodeCursor cannot have made it from this kind of id. */
export function decodeCursor(cursor: string, kind: IdKind): string | null {
  const id = Buffer.from(cursor, 'base64url').toString('latin1')
  return isId(kind, id) && encodeCursor(id) === cursor ? id : null
}
