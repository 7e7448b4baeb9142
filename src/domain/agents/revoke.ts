// Revokes a key or an OAuth client: its next call is refused and its open streams end within seconds. Its units keep
// running and are billed as before (design 4). Revoking again changes nothing.

import { tellChanged } from '../transactions/changes.ts'
import type { App } from '../../app.ts'
import type { AgentRevoked } from '../../contract/agent.ts'
import { revokeCredential } from '../../store/credentials.ts'
import { authorize } from '../authorization/authorize.ts'
import type { Caller } from '../credentials/caller.ts'
import { type AgentNoun, getAgent } from './find.ts'

export async function revokeAgent(
  app: App,
  caller: Caller,
  { noun, id }: { noun: AgentNoun; id: string },
): Promise<AgentRevoked> {
  const { created_by: createdBy } = await getAgent(app, caller, noun, id)
  authorize(caller, 'agent.revoke', { createdBy })
  await revokeCredential(app.db, { teamId: caller.teamId, id, at: app.clock.now() })
  tellChanged(app, caller.teamId)
  return { ok: true }
}
