// Revokes an invitation: its link stops working at once.

import type { App } from '../../app.ts'
import { notFound } from '../../contract/errors.ts'
import type { Done } from '../../contract/member.ts'
import { isId } from '../../lib/ids.ts'
import { deleteInvite } from '../../store/invites.ts'
import type { Caller } from '../credentials/caller.ts'
import { amongPeople } from '../teams/lock.ts'

export async function revokeInvite(app: App, caller: Caller, id: string): Promise<Done> {
  await amongPeople(app, caller, null, async (db, { allowed }) => {
    allowed('invite.revoke')
    const revoked = isId('invite', id) && (await deleteInvite(db, { teamId: caller.teamId, id }))
    if (!revoked) throw notFound('invitation', id)
  })
  return { ok: true }
}
