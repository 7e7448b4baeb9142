// Where a list goes on, as a caller carries it: opaque, so that what it is made of may change. Lists are
// ordered by id, which sorts by creation (lib/ids.ts).

export function encodeCursor(id: string): string {
  return Buffer.from(id).toString('base64url')
}

/** The id in a cursor, or null when it is not one that encodeCursor could have made for this kind of id. */
export function decodeCursor(cursor: string, prefix: string): string | null {
  const id = Buffer.from(cursor, 'base64url').toString('latin1')
  const genuine = new RegExp(`^${prefix}_[0-9a-f]{32}$`).test(id) && encodeCursor(id) === cursor
  return genuine ? id : null
}
