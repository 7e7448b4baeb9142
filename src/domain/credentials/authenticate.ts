// Finds the caller of a request. A key or an access token takes precedence over a session. Every failure is the same
// 401, so that it does not reveal which part was wrong (spec 5.5); only a valid key that has expired gets its own
// message. Nothing is cached: revoking a credential takes effect with its next call.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { forbidden, unauthorized } from '../../contract/errors.ts'
import { batched } from '../../lib/concurrency/batch.ts'
import { MINUTE } from '../../lib/clock.ts'
import { touchCredential } from '../../store/credentials.ts'
import type { Database } from '../../store/db.ts'
import { markAccessUsed } from '../../store/oauth-families.ts'
import {
  type Credential,
  findByAccessTokens,
  findCredentialById,
  findKeys,
} from '../../store/presented-credentials.ts'
import { setSessionTeam } from '../../store/sessions.ts'
import { listMemberships } from '../../store/teams.ts'
import type { Caller } from './caller.ts'
import { completePolicy } from './complete-policy.ts'
import { findLiveSession } from './sessions.ts'
import { credentialOfUnitToken } from './unit-token.ts'
import { isPrefixOf, tokenMatches, tokenPrefix } from './token.ts'
import { unrestrictedPolicy } from './unrestricted-policy.ts'

/** The credentials in a request. */
export type Presented = {
  /** The Authorization header. */
  authorization: string | null
  sessionToken: string | null
  /** The header `x-berth-team`. */
  team: string | null
  /** The User-Agent header. */
  userAgent: string | null
  /** A token for one unit (unit-token.ts), in a call about that unit alone. It takes precedence over the others. */
  ofUnit?: { token: string; unitId: string }
}

/**
 * `underWay`: checks again a call that was accepted and is still in progress. The team it names is then not
 * remembered as the session's team, and its access token may have expired, as long as its agent is not revoked.
 */
export type Authenticate = (presented: Presented, options?: { underWay: boolean }) => Promise<Caller>

/**
 * `lastUsedAt` and the client of a credential are updated at most once a minute, which saves a write on most calls.
 */
const TOUCH_EVERY_MS = MINUTE

export function createAuthenticate(app: App): Authenticate {
  const findCredential = batchedFind(app.db)
  return async (
    { authorization, sessionToken, team, userAgent, ofUnit },
    { underWay } = { underWay: false },
  ) => {
    if (ofUnit !== undefined) {
      const credential = await byUnitToken(app, ofUnit)
      await touch(app, credential, userAgent)
      return toCaller(credential)
    }
    if (authorization !== null) {
      const credential = await byBearer(app, findCredential, authorization, { team, underWay })
      await touch(app, credential, userAgent)
      return toCaller(credential)
    }
    if (sessionToken !== null) return await bySession(app, sessionToken, { team, remember: !underWay })
    throw unauthorized()
  }
}

/** Whether the Authorization header looks like one of our keys or access tokens. */
export function isOurBearer({ authorization }: Presented): boolean {
  return authorization !== null && readBearer(authorization).prefix !== null
}

function readBearer(authorization: string): { token: string; prefix: string | null } {
  const token = /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? ''
  return { token, prefix: tokenPrefix('key', token) ?? tokenPrefix('access', token) }
}

type FindCredential = (prefix: string) => Promise<Credential | null>

/** Looks up keys that arrive together in one statement. */
function batchedFind(db: Kysely<Database>): FindCredential {
  return batched(async (prefixes) => {
    const { access = [], key = [] } = Object.groupBy(new Set(prefixes), kindOfPrefix)
    const found = [
      ...(key.length === 0 ? [] : await findKeys(db, key)),
      ...(access.length === 0 ? [] : await findByAccessTokens(db, access)),
    ]
    const byPrefix = new Map(found.map((credential) => [credential.prefix, credential]))
    return prefixes.map((prefix) => byPrefix.get(prefix) ?? null)
  })
}

async function byBearer(
  app: App,
  findCredential: FindCredential,
  authorization: string,
  { team, underWay }: { team: string | null; underWay: boolean },
): Promise<Credential> {
  const { token, prefix } = readBearer(authorization)
  if (prefix === null) throw unauthorized()

  const credential = await findCredential(prefix)
  const matches = tokenMatches(token, credential?.hash ?? null)
  if (!credential || !matches || credential.revokedAt !== null) throw unauthorized()
  const what = credential.kind === 'key' ? 'key' : 'agent'
  const now = app.clock.now()
  // Only the owner of the whole token gets these messages.
  if (!isLive(credential, now)) {
    throw unauthorized(
      `This ${what} expired at ${credential.policy.expiresAt}; send another, or have its policy changed.`,
    )
  }
  if (!underWay && credential.tokenUntil !== null && credential.tokenUntil <= now) {
    throw unauthorized('This access token has expired; get another one with the refresh token.')
  }
  if (team !== null && team !== credential.teamId) {
    throw forbidden(`This ${what} belongs to another team than x-berth-team names.`)
  }
  return credential
}

async function byUnitToken(app: App, ofUnit: { token: string; unitId: string }): Promise<Credential> {
  const id = credentialOfUnitToken(app, ofUnit)
  const credential = id === null ? null : await findCredentialById(app.db, id)
  if (!credential || !isLive(credential, app.clock.now()))
    throw unauthorized('Send a token that was made for this unit, of a credential that is valid.')
  return credential
}

async function touch(
  app: App,
  { id, prefix, lastUsedAt, tokenUntil, tokenUsedAt }: Credential,
  userAgent: string | null,
): Promise<void> {
  const at = app.clock.now()
  // Records that the token arrived, so that it need not be returned again (domain/oauth/refresh.ts).
  if (tokenUntil !== null && tokenUsedAt === null) await markAccessUsed(app.db, { prefix, at })
  // It is in the future if the host's clock was set back.
  if (lastUsedAt !== null && Math.abs(at.getTime() - lastUsedAt.getTime()) <= TOUCH_EVERY_MS) return
  await touchCredential(app.db, { id, at, userAgent })
}

function kindOfPrefix(prefix: string): 'key' | 'access' {
  return isPrefixOf('access', prefix) ? 'access' : 'key'
}

function toCaller(credential: Credential): Caller {
  return {
    kind: credential.kind,
    credentialId: credential.id,
    credentialName: credential.name,
    clientName: credential.clientName,
    userId: credential.createdBy,
    teamId: credential.teamId,
    networkGroup: credential.networkGroup,
    plan: credential.plan,
    role: 'member',
    policy: completePolicy(credential.policy),
  }
}

export function isLive({ policy, revokedAt }: Pick<Credential, 'policy' | 'revokedAt'>, now: Date): boolean {
  const { expiresAt } = policy
  if (revokedAt !== null) return false
  return expiresAt === null || new Date(expiresAt) > now
}

async function bySession(
  app: App,
  token: string,
  { team, remember }: { team: string | null; remember: boolean },
): Promise<Caller> {
  const session = await findLiveSession(app, token)
  if (!session) throw unauthorized('This session has ended; sign in again.')

  const memberships = await listMemberships(app.db, session.userId)
  const wanted = team ?? session.currentTeamId
  const membership = memberships.find(({ teamId }) => teamId === wanted)
  if (!membership && team !== null) throw forbidden('You are not a member of the team x-berth-team names.')
  const acting = membership ?? memberships[0]
  if (!acting) throw forbidden('You are not a member of any team.')
  if (remember && acting.teamId !== session.currentTeamId) {
    await setSessionTeam(app.db, { id: session.id, teamId: acting.teamId })
  }
  return {
    kind: 'session',
    credentialId: session.id,
    credentialName: session.email,
    clientName: null,
    userId: session.userId,
    teamId: acting.teamId,
    networkGroup: acting.networkGroup,
    plan: acting.plan,
    role: acting.role,
    policy: unrestrictedPolicy,
  }
}
