// Creates another key for the first account, for an operator who lost credentials.json: keys are stored as hashes, so
// a lost key cannot be shown again. It stays valid until it is revoked.

import type { Kysely } from 'kysely'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/db.ts'
import { findFirstUser, listMemberships } from '../../store/teams.ts'
import { createKey } from './keys.ts'
import { unrestrictedPolicy } from './unrestricted-policy.ts'

/** Returns the plain key. Throws if there is no account yet. */
export async function createOperatorKey({
  db,
  clock,
}: {
  db: Kysely<Database>
  clock: Clock
}): Promise<string> {
  const user = await findFirstUser(db)
  const [membership] = user ? await listMemberships(db, user.id) : []
  if (!user || !membership)
    throw new Error('There is no account to create a key for: start Berth once to create the first.')
  const { secret } = await createKey(db, {
    teamId: membership.teamId,
    name: 'Operator key',
    policy: unrestrictedPolicy,
    createdBy: user.id,
    createdAt: clock.now(),
  })
  return secret
}
