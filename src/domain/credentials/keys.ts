// API keys of a team.

import type { Kysely } from 'kysely'
import type { Policy } from '../../contract/policy.ts'
import { newId } from '../../lib/ids.ts'
import { insertKey } from '../../store/credentials.ts'
import type { Database } from '../../store/db.ts'
import { newToken } from './token.ts'

export type NewKey = {
  teamId: string
  name: string
  policy: Policy
  createdBy: string | null
  createdAt: Date
}

/** Returns the plain key. It is not stored and cannot be shown again. */
export async function createKey(db: Kysely<Database>, key: NewKey): Promise<{ id: string; secret: string }> {
  const { token, prefix, hash } = newToken('key')
  const id = newId('credential')
  await insertKey(db, { ...key, id, prefix, hash })
  return { id, secret: token }
}
