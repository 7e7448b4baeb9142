// The question whether a program may act in a team, and the answer "no".

import type { App } from '../../app.ts'
import { type Policy, policySchema } from '../../contract/policy.ts'
import { countLiveCredentials, findConnection } from '../../store/credentials.ts'
import { findOauthClient, type OauthClient } from '../../store/oauth-clients.ts'
import {
  claimOauthRequest,
  deleteOauthRequest,
  findOauthRequest,
  type OauthRequest,
} from '../../store/oauth-requests.ts'
import { listMemberships, type Plan, type Role } from '../../store/teams.ts'
import { seatsOf } from '../agents/seats.ts'
import { findLiveSession } from '../credentials/sessions.ts'
import { tokenMatches, tokenPrefix } from '../credentials/token.ts'
import { clientKeyOf } from './client-key.ts'
import { withAnswer } from './redirects.ts'

export type TeamChoice = {
  id: string
  name: string
  role: Role
  plan: Plan
  seats: { used: number; max: number }
}

export type Question = {
  client: OauthClient
  redirectUri: string
  /** The mail address of the person asked. */
  email: string
  /** The teams of the person, and the selected one. */
  teams: TeamChoice[]
  team: TeamChoice
  /** The person's agent of this client in that team; null if there is none yet. */
  connected: { name: string; policy: Policy } | null
  /** The policy of the agent until the person changes it. */
  name: string
  policy: Policy
}

/** Returns the request of a ticket while it waits for an answer; null if there is none, or it took too long. */
export async function findRequest(
  { db, clock }: App,
  ticket: string,
): Promise<(OauthRequest & { prefix: string }) | null> {
  const prefix = tokenPrefix('consent', ticket)
  const request = prefix === null ? null : await findOauthRequest(db, prefix)
  const matches = tokenMatches(ticket, request?.hash ?? null)
  if (prefix === null || !request || !matches || request.expiresAt <= clock.now()) return null
  return { ...request, prefix }
}

/** Returns whether a ticket can still be answered; does not say by whom. */
export async function isWaiting(app: App, ticket: string): Promise<boolean> {
  return (await findRequest(app, ticket)) !== null
}

/**
 * `team`: the team to connect, null for the default. Returns null if the request has ended or belongs to another
 * session: the first session that opens it keeps it, so that no one can make another person answer their request.
 */
export async function askForConsent(
  app: App,
  { ticket, sessionToken, team: wanted }: { ticket: string; sessionToken: string; team: string | null },
): Promise<Question | null> {
  const { db } = app
  const session = await findLiveSession(app, sessionToken)
  const request = session && (await findRequest(app, ticket))
  if (!session || !request) return null
  if (!(await claimOauthRequest(db, { prefix: request.prefix, sessionId: session.id }))) return null
  const client = await findOauthClient(db, request.clientId)
  const teams = await listChoices(app, session.userId)
  const team = teams.find(({ id }) => id === (wanted ?? session.currentTeamId)) ?? teams[0]
  if (!client || !team) return null
  const mine = { teamId: team.id, createdBy: session.userId, clientKey: clientKeyOf(client) }
  const connected = await findConnection(db, mine)
  return {
    client,
    redirectUri: request.redirectUri,
    email: session.email,
    teams,
    team,
    connected,
    name: connected?.name ?? client.name ?? 'Agent',
    policy: policySchema.parse(connected?.policy ?? {}),
  }
}

async function listChoices({ db, clock }: App, userId: string): Promise<TeamChoice[]> {
  const now = clock.now()
  const memberships = await listMemberships(db, userId)
  return await Promise.all(
    memberships.map(async ({ teamId, teamName, role, plan }) => ({
      id: teamId,
      name: teamName,
      role,
      plan,
      seats: { used: await countLiveCredentials(db, { teamId, now }), max: seatsOf[plan] },
    })),
  )
}

/** The person refuses. Returns the URL at which the program waits for the answer; null as for `askForConsent`. */
export async function refuseConsent(
  app: App,
  { ticket, sessionToken }: { ticket: string; sessionToken: string },
): Promise<{ redirectUri: string; redirectTo: string } | null> {
  const session = await findLiveSession(app, sessionToken)
  const request = session && (await findRequest(app, ticket))
  if (!session || !request || request.sessionId !== session.id) return null
  if (!(await deleteOauthRequest(app.db, request.prefix))) return null
  const { redirectUri, state } = request
  const fields = { error: 'access_denied', error_description: 'The person did not agree.', state }
  return { redirectUri, redirectTo: withAnswer(redirectUri, { ...fields, iss: app.config.publicUrl }) }
}
