// Deletes a team (spec 4.1, 7). Its keys and invitations stop working and it has no members any more. Its row stays,
// with its audit log and its costs (decisions/teams-and-policies.md).

import type { App } from '../../app.ts'
import { forbidden, invalidState } from '../../contract/errors.ts'
import type { Done } from '../../contract/member.ts'
import { revokeCredentials } from '../../store/credentials.ts'
import { deleteHostedEnvironments } from '../../store/hosted-agents.ts'
import { deleteInvites } from '../../store/invites.ts'
import { deleteMembers } from '../../store/members.ts'
import { deleteSecretsOfStacks } from '../../store/secrets.ts'
import { deleteStacksOfTeam } from '../../store/stacks.ts'
import { deleteTeamSecrets } from '../../store/team-secrets.ts'
import { countUnitsOfTeam, deleteTeam } from '../../store/teams.ts'
import type { Caller } from '../credentials/caller.ts'
import { amongPeople } from './lock.ts'

export async function deleteTeamOfCaller(app: App, caller: Caller): Promise<Done> {
  await amongPeople(app, caller, null, async (db, { team: { id, personal }, allowed }) => {
    allowed('team.delete')
    if (personal) throw forbidden('A personal team belongs to its account and cannot be deleted.')
    const units = await countUnitsOfTeam(db, id)
    if (units > 0) {
      const text = `The team has ${units} ${units === 1 ? 'unit' : 'units'}, asleep and stopped ones counted`
      throw invalidState(`${text}; destroy them first.`, { units })
    }
    const at = app.clock.now()
    await deleteSecretsOfStacks(db, id)
    await deleteTeamSecrets(db, id)
    await deleteHostedEnvironments(db, id)
    await deleteStacksOfTeam(db, { teamId: id, at })
    await revokeCredentials(db, { teamId: id, at })
    await deleteInvites(db, id)
    await deleteMembers(db, id)
    await deleteTeam(db, { id, at })
  })
  return { ok: true }
}
