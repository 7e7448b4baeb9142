// The environments of the caller's team, and one of them with its sessions. Never a credential.

import type { App } from '../../app.ts'
import type { HostedAnswer, HostedList } from '../../contract/hosted-agents.ts'
import { listHostedEnvironments, listHostedSessions } from '../../store/hosted-agents.ts'
import type { Caller } from '../credentials/caller.ts'
import { getHosted } from './find.ts'
import { toHosted, toHostedSession } from './to-hosted.ts'

export async function listHostedOfTeam(app: App, { teamId }: Caller): Promise<HostedList> {
  return { environments: (await listHostedEnvironments(app.db, teamId)).map(toHosted) }
}

export async function getHostedWithSessions(app: App, caller: Caller, id: string): Promise<HostedAnswer> {
  const record = await getHosted(app, caller, id)
  const sessions = await listHostedSessions(app.db, { id, now: app.clock.now() })
  return { environment: toHosted(record), sessions: sessions.map(toHostedSession) }
}
