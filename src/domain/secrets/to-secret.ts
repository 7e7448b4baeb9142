import type { Secret } from '../../contract/secret.ts'
import type { TeamSecretsTable } from '../../store/team-secrets.ts'
import { requestsOf } from '../egress/sealed-secrets.ts'

export function toSecret(row: TeamSecretsTable, units: number): Secret {
  return {
    name: row.name,
    hosts: row.hosts,
    ...requestsOf(row),
    placeholder: row.placeholder,
    units,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}
