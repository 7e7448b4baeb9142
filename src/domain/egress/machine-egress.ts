// Converts the rules of a unit and its brokered secrets into what the engine enforces.

import type { App } from '../../app.ts'
import { isOwnSecret } from '../../contract/env.ts'
import type { BrokeredSecret, MachineEgress } from '../../engine/egress.ts'
import { storedEgress } from '../../store/egress.ts'
import { listSecrets } from '../../store/secrets.ts'
import { listTeamSecretsOfUnit } from '../../store/team-secrets.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { openSecret, openTeamSecret, requestsOf } from './sealed-secrets.ts'

/**
 * Null for a unit without rules and secrets, of which the engine then knows nothing. The secrets are as they are now,
 * and may be newer than the record.
 */
export async function machineEgress(app: App, unit: UnitRecord): Promise<MachineEgress | null> {
  const { egress, stackId, stackIsScope } = unit
  const secrets = await brokeredSecrets(app, unit)
  const isBound = storedEgress(egress) !== null || stackIsScope || secrets.length > 0
  return isBound ? { ...egress, stack: stackId, secrets } : null
}

async function brokeredSecrets(app: App, unit: UnitRecord): Promise<BrokeredSecret[]> {
  const entries = Object.values(unit.spec.env)
  const hasOwn = entries.some((entry) => isOwnSecret(entry) && entry.hosts !== undefined)
  const hasTeam = entries.some((entry) => typeof entry !== 'string' && 'teamSecret' in entry)
  const [own, team] = await Promise.all([
    hasOwn ? listSecrets(app.db, [unit.id]) : [],
    hasTeam ? listTeamSecretsOfUnit(app.db, unit.id) : [],
  ])
  return [
    ...own.flatMap((row) => {
      const { name, hosts, placeholder } = row
      if (hosts === null || placeholder === null) return []
      const value = openSecret(app.secretKey, unit.teamId, row)
      return [{ name, hosts, placeholder, value, ...requestsOf(row) }]
    }),
    ...team.map((row) => {
      const { name, hosts, placeholder } = row
      const value = openTeamSecret(app.secretKey, row)
      return { name, hosts, placeholder, value, ...requestsOf(row) }
    }),
  ]
}
