// Keeps the last owner of a team.

import type { Kysely } from 'kysely'
import { invalidState } from '../../contract/errors.ts'
import type { Database } from '../../store/db.ts'
import { countOwners } from '../../store/members.ts'

/** Call it with the team locked, before an owner stops being one. */
export async function keepAnOwner(db: Kysely<Database>, teamId: string): Promise<void> {
  if ((await countOwners(db, teamId)) > 1) return
  throw invalidState('A team needs an owner, and this is its last: make another member an owner first.', null)
}
