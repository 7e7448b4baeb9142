// The two credentials of an environment at rest: the vendor's, and the key of this service by which its units are made.

import type { SecretKey } from '../../lib/crypto.ts'
import type { HostedEnvironmentsTable } from '../../store/hosted-agents.ts'

type Named = { teamId: string; id: string }

const contextOf = (what: 'key' | 'token', { teamId, id }: Named) => ['hosted environment', what, teamId, id]

export function sealCredential(key: SecretKey, what: 'key' | 'token', named: Named, value: string): Buffer {
  return key.seal(Buffer.from(value), contextOf(what, named))
}

export function openCredentials(
  key: SecretKey,
  {
    id,
    team_id: teamId,
    sealed_key,
    sealed_token,
  }: Pick<HostedEnvironmentsTable, 'id' | 'team_id' | 'sealed_key' | 'sealed_token'>,
): { environmentKey: string; token: string } {
  const open = (what: 'key' | 'token', sealed: Buffer) =>
    key.open(sealed, contextOf(what, { teamId, id })).toString()
  return { environmentKey: open('key', sealed_key), token: open('token', sealed_token) }
}
