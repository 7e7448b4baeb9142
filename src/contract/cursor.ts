// Where a list goes on, as a caller sends it back.

import { decodeCursor } from '../lib/cursor.ts'
import type { IdKind } from '../lib/ids.ts'
import { validation } from './errors.ts'

/** The id behind which the next page begins, null for the first one. Throws `validation`. */
export function parseCursor(cursor: string | undefined, kind: IdKind): string | null {
  if (cursor === undefined) return null
  const id = decodeCursor(cursor, kind)
  if (id !== null) return id
  throw validation([{ path: 'cursor', message: 'must be the `next` of an earlier answer' }])
}
