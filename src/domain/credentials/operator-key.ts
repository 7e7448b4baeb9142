// Another key for the first account, for an operator whose credentials.json is gone: keys are stored as
// hashes, so a lost one cannot be told again. The lost one stays valid until it is revoked.

import type { Kysely } from 'kysely'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/db.ts'
import { findFirstUser, listMemberships } from '../../store/teams.ts'
import { createKey } from './keys.ts'
import { unrestrictedPolicy } from './unrestricted-policy.ts'

/** Answers the key in plain. Throws when there is no account yet. */
export async function createOperatorKey({
  db,
  clock,
}: {
  db: Kysely<Database>
  clock: Clock
}): Promise<string> {
  const user = await findFirstUser(db)
  const [membership] = user ? await listMemberships(db, user.id) : []
  if (!user || !membership) throw new Error('There is no account that a key could be made for.')
  const { secret } = await createKey(db, {
    teamId: membership.teamId,
    name: 'Operator key',
    policy: unrestrictedPolicy,
    createdBy: user.id,
    createdAt: clock.now(),
  })
  return secret
}
