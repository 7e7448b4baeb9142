// A person lets a program act in a team, as an agent under a policy. It is one transaction with the team locked: a
// person who leaves the team at the same time has either left before, or takes the agent along.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { invalidState } from '../../contract/errors.ts'
import type { Connect, Connected } from '../../contract/oauth.ts'
import { grantsEverySecret } from '../../contract/secret.ts'
import { MINUTE } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import {
  type Connection,
  countLiveCredentials,
  findConnection,
  insertConnection,
  renewConnection,
} from '../../store/credentials.ts'
import type { Database } from '../../store/db.ts'
import { findOauthClient } from '../../store/oauth-clients.ts'
import { deleteOauthRequest, insertOauthCode } from '../../store/oauth-requests.ts'
import type { Plan } from '../../store/teams.ts'
import { refuseBeyondSeats } from '../agents/seats.ts'
import { isLive } from '../credentials/authenticate.ts'
import type { Caller } from '../credentials/caller.ts'
import { newToken } from '../credentials/token.ts'
import { applyAll } from '../egress/apply.ts'
import { narrowUnits } from '../egress/narrow.ts'
import { checkEnforced } from '../policies/enforced.ts'
import { checkRates } from '../credentials/rates.ts'
import { laterExpiry } from '../policies/expiry.ts'
import { amongPeople } from '../teams/lock.ts'
import { clientKeyOf } from './client-key.ts'
import { findRequest } from './consent.ts'
import { withAnswer } from './redirects.ts'

const CODE_LIVES_MS = MINUTE

export const START_AGAIN = 'Start again in the program.'

/**
 * Throws `invalid_state` if the request has ended or belongs to another session, `quota_exceeded` if the plan has no
 * seat left.
 */
export async function connectAgent(app: App, caller: Caller, asked: Connect): Promise<Connected> {
  const { teamId, userId } = caller
  const ended = () => invalidState(`This request was answered, or took too long. ${START_AGAIN}`, null)
  await checkEnforced(app, asked.policy.egress, 'policy.egress')
  checkRates(app, asked.policy.rates)
  const { narrowed, ...connected } = await amongPeople(app, caller, null, async (db, { team, allowed }) => {
    allowed('agent.connect')
    if (grantsEverySecret(asked.policy)) allowed('secret.grantAll')
    const at = app.clock.now()
    const policy = { ...asked.policy, expiresAt: laterExpiry(asked.policy.expiresAt, at) }
    const request = await findRequest({ ...app, db }, asked.ticket)
    const client = request && (await findOauthClient(db, request.clientId))
    if (!request || !client || userId === null) throw ended()
    if (request.sessionId !== caller.credentialId || client.id !== asked.client) throw ended()
    if (!(await deleteOauthRequest(db, request.prefix))) throw ended()
    const agentId = await makeAgent(db, team.plan, {
      teamId,
      name: asked.name,
      policy,
      createdBy: userId,
      client: { id: client.id, name: client.name, uri: client.uri, icon: client.icon },
      clientKey: clientKeyOf(client),
      at,
    })
    const { token: code, prefix, hash } = newToken('code')
    const { redirectUri, codeChallenge, state } = request
    const expiresAt = new Date(at.getTime() + CODE_LIVES_MS)
    await insertOauthCode(db, {
      prefix,
      hash,
      clientId: client.id,
      redirectUri,
      codeChallenge,
      credentialId: agentId,
      expiresAt,
    })
    // One that is connected again may have units, under the bound of before.
    const narrowed = await narrowUnits(app, db, { teamId, heldBy: agentId }, policy)
    const redirectTo = withAnswer(redirectUri, { code, state, iss: app.config.publicUrl })
    return { agentId, redirectTo, narrowed }
  })
  await applyAll(
    app,
    narrowed.map(({ id }) => id),
  )
  return connected
}

/** There is one agent for each person, team and client: connecting it again changes it. */
async function makeAgent(db: Kysely<Database>, plan: Plan, connection: Connection): Promise<string> {
  const { teamId, at } = connection
  const before = await findConnection(db, connection)
  const hasSeat = before !== null && isLive({ policy: before.policy, revokedAt: null }, at)
  if (!hasSeat) {
    const used = await countLiveCredentials(db, { teamId, now: at })
    refuseBeyondSeats(plan, used)
  }
  if (before) {
    await renewConnection(db, { ...connection, id: before.id })
    return before.id
  }
  const id = newId('credential')
  await insertConnection(db, { ...connection, id })
  return id
}
