// Lists keys and OAuth clients of the caller's team, newest first, including revoked ones.

import type { App } from '../../app.ts'
import type { AgentList, KeyList } from '../../contract/agent.ts'
import { countLiveCredentials, listAgents } from '../../store/credentials.ts'
import type { Caller } from '../credentials/caller.ts'
import { seatsOf } from './seats.ts'
import { toAgent } from './to-agent.ts'

export async function listAgentsOfTeam(app: App, { teamId, plan }: Caller): Promise<AgentList> {
  const [agents, used] = await Promise.all([
    listAgents(app.db, { teamId, now: app.clock.now() }),
    countLiveCredentials(app.db, { teamId, now: app.clock.now() }),
  ])
  return { agents: agents.map(toAgent), seats: { used, max: seatsOf[plan] } }
}

export async function listKeys(app: App, { teamId }: Caller): Promise<KeyList> {
  const agents = await listAgents(app.db, { teamId, now: app.clock.now() })
  return { keys: agents.filter(({ kind }) => kind === 'key').map(toAgent) }
}
