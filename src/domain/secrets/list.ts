// GET /v1/secrets: the team's secrets that the caller may bind, without values.

import type { App } from '../../app.ts'
import type { SecretList } from '../../contract/secret.ts'
import { countUnitsBinding, listTeamSecrets } from '../../store/team-secrets.ts'
import type { Caller } from '../credentials/caller.ts'
import { mayBind } from '../policies/secrets.ts'
import { toSecret } from './to-secret.ts'

export async function listSecretsOfTeam(app: App, { teamId, policy }: Caller): Promise<SecretList> {
  const [rows, units] = await Promise.all([
    listTeamSecrets(app.db, teamId),
    countUnitsBinding(app.db, teamId),
  ])
  const shown = rows.filter(({ name }) => mayBind(policy.allowedSecrets, name))
  return { secrets: shown.map((row) => toSecret(row, units.get(row.name) ?? 0)) }
}
