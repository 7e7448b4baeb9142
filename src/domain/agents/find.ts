// Finds a key or OAuth client of the caller's team. As with units, one of another team gets 403 and an unknown one
// 404; rows of another team are never read.

import type { App } from '../../app.ts'
import { forbidden, invalidState, notFound } from '../../contract/errors.ts'
import { isId } from '../../lib/ids.ts'
import { type AgentRecord, credentialKind, findAgent } from '../../store/credentials.ts'
import type { Caller } from '../credentials/caller.ts'

/** Which credentials a path is about: `/v1/keys` only finds keys. */
export type AgentNoun = 'key' | 'agent'

export async function getAgent(
  app: App,
  { teamId }: Caller,
  noun: AgentNoun,
  id: string,
): Promise<AgentRecord> {
  if (!isId('credential', id)) throw notFound(noun, id)
  const record = await findAgent(app.db, { teamId, id, now: app.clock.now() })
  const isMeant = (kind: AgentRecord['kind'] | null) => kind === 'key' || (noun === 'agent' && kind !== null)
  if (record && isMeant(record.kind)) return record
  if (!record && isMeant(await credentialKind(app.db, id)))
    throw forbidden(`This ${noun} belongs to another team.`)
  throw notFound(noun, id)
}

export function refuseRevoked({ revoked_at: at }: Pick<AgentRecord, 'revoked_at'>): void {
  if (at) throw invalidState('It was revoked, and cannot be changed any more.', null)
}
