// The cursor of a list: opaque for clients, so that its content may change. Lists are ordered by id, which sorts by
// creation (ids.ts).

import { type IdKind, isId } from './ids.ts'

export function encodeCursor(id: string): string {
  return Buffer.from(id).toString('base64url')
}

/** Returns the id in a cursor, or null if encodeCursor cannot have made it from an id of this kind. */
export function decodeCursor(cursor: string, kind: IdKind): string | null {
  const id = Buffer.from(cursor, 'base64url').toString('latin1')
  return isId(kind, id) && encodeCursor(id) === cursor ? id : null
}
