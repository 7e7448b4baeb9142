// The values of secrets at rest, of units and stacks and of teams. An encrypted value can only be decrypted for its own
// team, owner and name.

import { randomBytes } from 'node:crypto'
import type { SecretKey } from '../../lib/crypto.ts'
import type { SecretRequests } from '../../lib/egress/secret-requests.ts'
import type { SecretsTable } from '../../store/secrets.ts'
import type { TeamSecretsTable } from '../../store/team-secrets.ts'

type PlainSecret = Omit<SecretsTable, 'owner_id' | 'sealed'> & {
  teamId: string
  ownerId: string
  value: string
}

export function sealSecret(key: SecretKey, { teamId, ownerId, value, ...rest }: PlainSecret): SecretsTable {
  const sealed = key.seal(Buffer.from(value), context(teamId, ownerId, rest.name))
  return { owner_id: ownerId, sealed, ...rest }
}

export function openSecret(key: SecretKey, teamId: string, { owner_id, name, sealed }: SecretsTable): string {
  return key.open(sealed, context(teamId, owner_id, name)).toString()
}

export function sealTeamSecret(
  key: SecretKey,
  { teamId, name, value }: { teamId: string; name: string; value: string },
): Buffer {
  return key.seal(Buffer.from(value), contextOfTeam(teamId, name))
}

export function openTeamSecret(key: SecretKey, { team_id, name, sealed }: TeamSecretsTable): string {
  return key.open(sealed, contextOfTeam(team_id, name)).toString()
}

/** For which requests a stored secret is, as the engine and answers have it. */
export function requestsOf({ methods, paths }: Pick<SecretsTable, 'methods' | 'paths'>): SecretRequests {
  return { ...(methods && { methods }), ...(paths && { paths }) }
}

/** What a unit has in place of a value. It says what it is to a person who finds it, and nothing about the value. */
export function newPlaceholder(): string {
  return `berth_secret_${randomBytes(20).toString('hex')}`
}

function context(teamId: string, ownerId: string, name: string): string[] {
  return ['secret', teamId, ownerId, name]
}

function contextOfTeam(teamId: string, name: string): string[] {
  return ['team secret', teamId, name]
}
