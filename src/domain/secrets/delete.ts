// DELETE /v1/secrets/{name}: units that bind it lose it at once, and run on with a placeholder that is worth nothing.

import type { App } from '../../app.ts'
import { notFound } from '../../contract/errors.ts'
import { type SecretDeleted, secretNameSchema } from '../../contract/secret.ts'
import { deleteTeamSecret } from '../../store/team-secrets.ts'
import { authorize } from '../authorization/authorize.ts'
import type { Caller } from '../credentials/caller.ts'
import { applyAll } from '../egress/apply.ts'
import { unbindSecrets } from '../egress/narrow.ts'
import { inTeamTransaction } from '../transactions/transactions.ts'

export async function deleteSecretOfTeam(app: App, caller: Caller, name: string): Promise<SecretDeleted> {
  authorize(caller, 'secret.delete')
  // The database refuses some of the texts that are no name.
  if (!secretNameSchema.safeParse(name).success) throw notFound('secret', name)
  const { teamId } = caller
  const unbound = await inTeamTransaction(app, teamId, async (db) => {
    if (!(await deleteTeamSecret(db, { teamId, name }))) throw notFound('secret', name)
    return await unbindSecrets(app, db, { teamId, heldBy: null }, (bound) => bound !== name)
  })
  await applyAll(
    app,
    unbound.map(({ id }) => id),
  )
  return { ok: true, unbound }
}
