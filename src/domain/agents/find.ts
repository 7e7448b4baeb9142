// One key or OAuth client of the caller's team. Another team's does not exist for it.

import type { App } from '../../app.ts'
import { notFound } from '../../contract/errors.ts'
import { isId } from '../../lib/ids.ts'
import { type AgentRecord, findAgent } from '../../store/credentials.ts'
import type { Caller } from '../credentials/caller.ts'

/** Which of them a path is about: `/v1/keys` knows keys alone. */
export type AgentNoun = 'key' | 'agent'

export async function getAgent(
  app: App,
  { teamId }: Caller,
  noun: AgentNoun,
  id: string,
): Promise<AgentRecord> {
  const record = isId('credential', id) ? await findAgent(app.db, { teamId, id }) : null
  if (!record || (noun === 'key' && record.kind !== 'key')) throw notFound(noun, id)
  return record
}
