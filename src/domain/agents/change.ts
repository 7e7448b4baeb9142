// Changes the name or the policy of a key or an OAuth client, with effect from its next call.

import type { App } from '../../app.ts'
import type { AgentChange, AgentChanged } from '../../contract/agent.ts'
import { invalidState } from '../../contract/errors.ts'
import { changeCredential } from '../../store/credentials.ts'
import { authorize } from '../authorization/authorize.ts'
import type { Caller } from '../credentials/caller.ts'
import { laterExpiry } from '../policies/expiry.ts'
import { type AgentNoun, getAgent } from './find.ts'
import { tellChanged } from '../transactions/changes.ts'
import { toAgent } from './to-agent.ts'

export async function changeAgent(
  app: App,
  caller: Caller,
  { noun, id, change }: { noun: AgentNoun; id: string; change: AgentChange },
): Promise<AgentChanged> {
  const { teamId } = caller
  const before = await getAgent(app, caller, noun, id)
  authorize(caller, 'agent.change', { createdBy: before.created_by })
  await changeCredential(app.db, { ...change, ...withLaterExpiry(change, app.clock.now()), teamId, id })
  tellChanged(app, teamId)
  const after = await getAgent(app, caller, noun, id)
  if (after.revoked_at) throw invalidState('It was revoked, and cannot be changed any more.', null)
  return { agent: toAgent(after) }
}

function withLaterExpiry({ policy }: AgentChange, now: Date): Pick<AgentChange, 'policy'> {
  if (policy?.expiresAt === undefined) return {}
  return { policy: { ...policy, expiresAt: laterExpiry(policy.expiresAt, now) } }
}
