// The cursor of a list: opaque for clients, so that its content may change. Lists are ordered by id, which sorts by
// creation (ids.ts); what is ordered otherwise has the fields that its next page begins after.

import { type IdKind, isId } from './ids.ts'

export function encodeCursor(id: string): string {
  return Buffer.from(id).toString('base64url')
}

/** Returns the id in a cursor, or null if encodeCursor cannot have made it from an id of this kind. */
export function decodeCursor(cursor: string, kind: IdKind): string | null {
  const id = Buffer.from(cursor, 'base64url').toString('latin1')
  return isId(kind, id) && encodeCursor(id) === cursor ? id : null
}

/** No field may have a line break. */
export function encodeFields(fields: readonly string[]): string {
  return Buffer.from(fields.join('\n')).toString('base64url')
}

/** Returns what was encoded, or something else if encodeFields did not make it. */
export function decodeFields(cursor: string): string[] {
  return Buffer.from(cursor, 'base64url').toString().split('\n')
}
