// DELETE /v1/hosted-agents/{id}: the environment, its key and the units of its sessions.

import type { App } from '../../app.ts'
import type { HostedDeleted } from '../../contract/hosted-agents.ts'
import { revokeCredential } from '../../store/credentials.ts'
import { deleteHostedEnvironment, listHostedUnits } from '../../store/hosted-agents.ts'
import { authorize } from '../authorization/authorize.ts'
import type { Caller } from '../credentials/caller.ts'
import { inTeamTransaction } from '../transactions/transactions.ts'
import { destroyUnit } from '../units/destroy.ts'
import { getHosted } from './find.ts'

export async function deleteHosted(app: App, caller: Caller, id: string): Promise<HostedDeleted> {
  const { teamId } = caller
  const { created_by: createdBy, credential_id: credentialId } = await getHosted(app, caller, id)
  authorize(caller, 'hosted.delete', { createdBy })
  // Without its key, its controller makes no unit any more.
  const destroyed = await inTeamTransaction(app, teamId, async (db) => {
    await revokeCredential(db, { teamId, id: credentialId, at: app.clock.now() })
    await deleteHostedEnvironment(db, { teamId, id })
    return await listHostedUnits(db, credentialId)
  })
  await Promise.all(destroyed.map(async (unit) => await destroyUnit(app, caller, unit)))
  return { ok: true, destroyed }
}
