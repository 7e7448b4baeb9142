// Creates a key for the caller's team; only a signed-in person may (spec 5.3).

import type { App } from '../../app.ts'
import type { KeyCreate, KeyCreated } from '../../contract/agent.ts'
import { quotaExceeded } from '../../contract/errors.ts'
import { grantsEverySecret } from '../../contract/secret.ts'
import { countLiveCredentials, findAgent } from '../../store/credentials.ts'
import { authorize } from '../authorization/authorize.ts'
import type { Caller } from '../credentials/caller.ts'
import { createKey } from '../credentials/keys.ts'
import type { Once } from '../idempotency/once.ts'
import { checkEnforced } from '../policies/enforced.ts'
import { laterExpiry } from '../policies/expiry.ts'
import { inLiveTeamTransaction } from '../transactions/transactions.ts'
import { seatsOf } from './seats.ts'
import { toAgent } from './to-agent.ts'

/** Throws `quota_exceeded` if the plan has no seat left. */
export async function createKeyOfTeam(
  app: App,
  caller: Caller,
  { name, policy: asked }: KeyCreate,
  once: Once | null,
): Promise<KeyCreated> {
  const { teamId, userId, plan } = caller
  await checkEnforced(app, asked.egress, 'policy.egress')
  if (grantsEverySecret(asked)) authorize(caller, 'secret.grantAll')
  return await inLiveTeamTransaction(app, { teamId, once }, async (db) => {
    const now = app.clock.now()
    const policy = { ...asked, expiresAt: laterExpiry(asked.expiresAt, now) }
    const used = await countLiveCredentials(db, { teamId, now })
    const max = seatsOf[plan]
    if (used >= max) {
      throw quotaExceeded(
        `The team's plan has room for ${max} keys and agents, and has ${used}; revoke one first.`,
        {
          field: 'seats',
          used,
          max,
        },
      )
    }
    const { id, secret } = await createKey(db, { teamId, name, policy, createdBy: userId, createdAt: now })
    const record = await findAgent(db, { teamId, id, now })
    if (!record) throw new Error('a new key was not found after its creation')
    const created = { key: toAgent(record), secret }
    await once?.keep(db, created)
    return created
  })
}
