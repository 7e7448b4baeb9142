// Creates a key for the caller's team; only a signed-in person may (spec 5.3).

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import type { KeyCreate, KeyCreated } from '../../contract/agent.ts'
import type { Policy } from '../../contract/policy.ts'
import { grantsEverySecret } from '../../contract/secret.ts'
import { countLiveCredentials, findAgent } from '../../store/credentials.ts'
import type { Database } from '../../store/db.ts'
import { authorize } from '../authorization/authorize.ts'
import type { Caller } from '../credentials/caller.ts'
import { createKey } from '../credentials/keys.ts'
import type { Once } from '../idempotency/once.ts'
import { checkEnforced } from '../policies/enforced.ts'
import { checkRates } from '../credentials/rates.ts'
import { laterExpiry } from '../policies/expiry.ts'
import { inLiveTeamTransaction } from '../transactions/transactions.ts'
import { refuseBeyondSeats } from './seats.ts'
import { toAgent } from './to-agent.ts'

/** Throws `quota_exceeded` if the plan has no seat left. */
export async function createKeyOfTeam(
  app: App,
  caller: Caller,
  { name, policy: asked }: KeyCreate,
  once: Once | null,
): Promise<KeyCreated> {
  const { teamId } = caller
  await checkPolicy(app, caller, asked)
  return await inLiveTeamTransaction(app, { teamId, once }, async (db) => {
    const { id, secret } = await insertKeyOfTeam(app, db, caller, { name, policy: asked })
    const record = await findAgent(db, { teamId, id, now: app.clock.now() })
    if (!record) throw new Error('a new key was not found after its creation')
    const created = { key: toAgent(record), secret }
    await once?.keep(db, created)
    return created
  })
}

/** Throws if the caller may not give a key this policy, or this service cannot enforce it. */
export async function checkPolicy(app: App, caller: Caller, policy: Policy): Promise<void> {
  await checkEnforced(app, policy.egress, 'policy.egress')
  checkRates(app, policy.rates)
  if (grantsEverySecret(policy)) authorize(caller, 'secret.grantAll')
}

/** Hold the team's lock. Throws as `createKeyOfTeam`. */
export async function insertKeyOfTeam(
  app: App,
  db: Kysely<Database>,
  { teamId, userId, plan }: Caller,
  { name, policy: asked }: { name: string; policy: Policy },
): Promise<{ id: string; secret: string }> {
  const now = app.clock.now()
  const policy = { ...asked, expiresAt: laterExpiry(asked.expiresAt, now) }
  const used = await countLiveCredentials(db, { teamId, now })
  refuseBeyondSeats(plan, used)
  return await createKey(db, { teamId, name, policy, createdBy: userId, createdAt: now })
}
