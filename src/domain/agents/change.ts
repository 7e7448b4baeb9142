// Changes the name or the policy of a key or an OAuth client, with effect from its next call.

import type { App } from '../../app.ts'
import type { AgentChange, AgentChanged } from '../../contract/agent.ts'
import { grantsEverySecret } from '../../contract/secret.ts'
import { changeCredential, type CredentialChange } from '../../store/credentials.ts'
import { authorize } from '../authorization/authorize.ts'
import type { Caller } from '../credentials/caller.ts'
import { applyAll } from '../egress/apply.ts'
import { type Narrowed, type NarrowerBounds, narrowUnits } from '../egress/narrow.ts'
import { checkEnforced } from '../policies/enforced.ts'
import { checkRates } from '../credentials/rates.ts'
import { laterExpiry } from '../policies/expiry.ts'
import { type AgentNoun, getAgent, refuseRevoked } from './find.ts'
import { tellChanged } from '../transactions/changes.ts'
import { inTeamTransaction } from '../transactions/transactions.ts'
import { toAgent } from './to-agent.ts'

export async function changeAgent(
  app: App,
  caller: Caller,
  { noun, id, change }: { noun: AgentNoun; id: string; change: AgentChange },
): Promise<AgentChanged> {
  const { teamId } = caller
  const before = await getAgent(app, caller, noun, id)
  authorize(caller, 'agent.change', { createdBy: before.created_by })
  const set = { ...change, ...withLaterExpiry(change, app.clock.now()), teamId, id }
  const { egress, allowedSecrets } = change.policy ?? {}
  await checkEnforced(app, egress, 'policy.egress')
  checkRates(app, change.policy?.rates)
  if (grantsEverySecret({ allowedSecrets })) authorize(caller, 'secret.grantAll')
  const isBound = egress !== undefined || allowedSecrets !== undefined
  const narrowed = isBound
    ? await changeBounds(app, set, { egress, allowedSecrets })
    : await changeAlone(app, set)
  const after = await getAgent(app, caller, noun, id)
  refuseRevoked(after)
  return { agent: toAgent(after), narrowed }
}

async function changeAlone(app: App, change: CredentialChange): Promise<Narrowed[]> {
  await changeCredential(app.db, change)
  tellChanged(app, change.teamId)
  return []
}

/** Its units are narrowed in the same transaction, so that none is made or set by the wider bounds meanwhile. */
async function changeBounds(app: App, change: CredentialChange, bounds: NarrowerBounds): Promise<Narrowed[]> {
  const { teamId, id } = change
  const narrowed = await inTeamTransaction(app, teamId, async (db) => {
    await changeCredential(db, change)
    return await narrowUnits(app, db, { teamId, heldBy: id }, bounds)
  })
  await applyAll(
    app,
    narrowed.map((unit) => unit.id),
  )
  return narrowed
}

function withLaterExpiry({ policy }: AgentChange, now: Date): Pick<AgentChange, 'policy'> {
  if (policy?.expiresAt === undefined) return {}
  return { policy: { ...policy, expiresAt: laterExpiry(policy.expiresAt, now) } }
}
