// The programs that a person has connected to the team they act in.

import type { App } from '../../app.ts'
import type { Agent } from '../../contract/agent.ts'
import { listAgents } from '../../store/credentials.ts'
import type { Session } from '../../store/sessions.ts'
import { listMemberships } from '../../store/teams.ts'
import { toAgent } from '../agents/to-agent.ts'
import { isLive } from '../credentials/authenticate.ts'

/** Newest first, without those that were revoked or have expired. Empty where the person is in no team. */
export async function listConnected(
  { db, clock }: App,
  { userId, email, currentTeamId }: Pick<Session, 'userId' | 'email' | 'currentTeamId'>,
): Promise<Agent[]> {
  const memberships = await listMemberships(db, userId)
  const team = memberships.find(({ teamId }) => teamId === currentTeamId) ?? memberships[0]
  if (!team) return []
  const now = clock.now()
  const agents = (await listAgents(db, { teamId: team.teamId, now })).map(toAgent)
  return agents.filter(
    ({ kind, policy, revokedAt, createdBy }) =>
      kind === 'oauth' &&
      createdBy?.email === email &&
      isLive({ policy, revokedAt: revokedAt === null ? null : new Date(revokedAt) }, now),
  )
}
