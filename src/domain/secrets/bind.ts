// The brokered secrets of units that are about to be made: whether each exists, whether its value could ever go
// anywhere, and whether its placeholder says which secret it stands for.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import type { EnvInput } from '../../contract/env.ts'
import { isOwnSecret, teamSecretsOf } from '../../contract/env.ts'
import { type Issue, validation } from '../../contract/errors.ts'
import { decideEgress } from '../../lib/egress/explain.ts'
import type { EgressRules } from '../../lib/egress/rules.ts'
import type { Database } from '../../store/db.ts'
import { listTeamSecrets } from '../../store/team-secrets.ts'
import { checkBrokers, checkHosts } from './hosts.ts'
import { isAmbiguous } from './put.ts'

const BROKERED_PORT = 443

/** Throws `validation` where the environment asks for what this service does not do. Reads no team. */
export async function checkBrokeredEnv(app: App, env: EnvInput): Promise<void> {
  for (const [variable, entry] of Object.entries(env)) {
    const path = `spec.env.${variable}`
    if (typeof entry === 'string' || (isOwnSecret(entry) && entry.hosts === undefined)) continue
    await checkBrokers(app, path)
    if (isOwnSecret(entry)) checkHosts(app, entry.hosts ?? [], `${path}.hosts`)
  }
}

type Bound = { path: string; name: string; hosts: string[]; placeholder: string | null }

/** Throws `validation` unless the unit can use each of its brokered secrets. Call it with the team locked. */
export async function checkBindings(
  db: Kysely<Database>,
  teamId: string,
  { env, egress }: { env: EnvInput; egress: EgressRules },
): Promise<void> {
  const rows = teamSecretsOf(env).length === 0 ? [] : await listTeamSecrets(db, teamId)
  const issues: Issue[] = []
  const bound = new Map<string, Bound>()
  for (const [variable, entry] of Object.entries(env)) {
    if (typeof entry === 'string') continue
    if (isOwnSecret(entry)) {
      const { secret: name, hosts, placeholder = null } = entry
      if (hosts) bound.set(`own ${name}`, { path: `spec.env.${variable}.hosts`, name, hosts, placeholder })
      continue
    }
    const path = `spec.env.${variable}.teamSecret`
    const row = rows.find(({ name }) => name === entry.teamSecret)
    if (row) bound.set(`team ${row.name}`, { path, ...row })
    else issues.push({ path, message: `the team has no secret "${entry.teamSecret}"` })
  }
  issues.push(...unreachable([...bound.values()], egress), ...ambiguous([...bound.values()]))
  if (issues.length > 0) throw validation(issues)
}

/** A secret opens no host: without a rule for one of its hosts the unit could never use it. */
function unreachable(bound: Bound[], egress: EgressRules): Issue[] {
  const reaches = (host: string) => decideEgress(egress, host, BROKERED_PORT).decision === 'allowed'
  return bound.flatMap(({ path, name, hosts }) => {
    if (hosts.some(reaches)) return []
    const [first = ''] = hosts
    const message =
      `the secret ${name} is for ${hosts.join(', ')}, and the unit's rules of egress allow none of them: a secret opens no ` +
      `host by itself, so add ${first} to "egress.allow"`
    return [{ path, message }]
  })
}

function ambiguous(bound: Bound[]): Issue[] {
  return bound.flatMap(({ path, name, placeholder }, at) => {
    if (placeholder === null) return []
    const other = bound
      .slice(0, at)
      .find((before) => before.placeholder !== null && isAmbiguous(before.placeholder, placeholder))
    if (!other) return []
    return [{ path, message: `the placeholder of ${name} is, contains or is part of that of ${other.name}` }]
  })
}
