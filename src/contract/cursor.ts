// Parses the cursor of a list, as a caller sends it back.

import { decodeCursor } from '../lib/cursor.ts'
import type { IdKind } from '../lib/ids.ts'
import { validation } from './errors.ts'

/** Returns the id that the next page starts after, null for the first page. Throws `validation`. */
export function parseCursor(cursor: string | undefined, kind: IdKind): string | null {
  if (cursor === undefined) return null
  const id = decodeCursor(cursor, kind)
  if (id !== null) return id
  throw notACursor()
}

export function notACursor(): Error {
  return validation([{ path: 'cursor', message: 'must be the `next` of an earlier answer' }])
}
