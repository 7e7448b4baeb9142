// From what a request carries to who is calling. A key or an access token goes before a session; every failure is the same
// 401, so that it teaches nothing about which part was wrong (spec 5.5), but for a whole key that has expired. Nothing is cached: revoking a
// credential holds from the next call on.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { forbidden, unauthorized } from '../../contract/errors.ts'
import { policySchema } from '../../contract/policy.ts'
import { batched } from '../../lib/concurrency/batch.ts'
import { MINUTE } from '../../lib/clock.ts'
import { type Credential, findByAccessTokens, findKeys, touchCredential } from '../../store/credentials.ts'
import type { Database } from '../../store/db.ts'
import { markAccessUsed } from '../../store/oauth-families.ts'
import { setSessionTeam } from '../../store/sessions.ts'
import { listMemberships } from '../../store/teams.ts'
import type { Caller } from './caller.ts'
import { findLiveSession } from './sessions.ts'
import { isPrefixOf, tokenMatches, tokenPrefix } from './token.ts'
import { unrestrictedPolicy } from './unrestricted-policy.ts'

/** What a request shows of itself. */
export type Presented = {
  /** The Authorization header. */
  authorization: string | null
  sessionToken: string | null
  /** The header `x-berth-team`. */
  team: string | null
  /** What the client says it is. */
  userAgent: string | null
}

/**
 * `underWay`: of a call that was let in and goes on. What it names is not remembered as the session's team, and an access
 * token may have ended meanwhile, as long as its agent has not.
 */
export type Authenticate = (presented: Presented, options?: { underWay: boolean }) => Promise<Caller>

/** `lastUsedAt` of a credential, and by what client, is true to the minute, which spares a write on most calls. */
const TOUCH_EVERY_MS = MINUTE

export function createAuthenticate(app: App): Authenticate {
  const findCredential = batchedFind(app.db)
  return async ({ authorization, sessionToken, team, userAgent }, { underWay } = { underWay: false }) => {
    if (authorization !== null) {
      const credential = await byBearer(app, findCredential, authorization, { team, underWay })
      await touch(app, credential, userAgent)
      return toCaller(credential)
    }
    if (sessionToken !== null) return await bySession(app, sessionToken, { team, remember: !underWay })
    throw unauthorized()
  }
}

/** Whether what is shown looks like a key of ours, or an access token. */
export function isOurBearer({ authorization }: Presented): boolean {
  return authorization !== null && readBearer(authorization).prefix !== null
}

function readBearer(authorization: string): { token: string; prefix: string | null } {
  const token = /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? ''
  return { token, prefix: tokenPrefix('key', token) ?? tokenPrefix('access', token) }
}

type FindCredential = (prefix: string) => Promise<Credential | null>

/** Those that arrive together are looked up together. */
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
  // Only whoever has the whole of it hears these.
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

async function touch(
  app: App,
  { id, prefix, lastUsedAt, tokenUntil, tokenUsedAt }: Credential,
  userAgent: string | null,
): Promise<void> {
  const at = app.clock.now()
  // That it arrived: from then on nobody has to be told it again (domain/oauth/refresh.ts).
  if (tokenUntil !== null && tokenUsedAt === null) await markAccessUsed(app.db, { prefix, at })
  // In the future it lies when the host's clock was set back.
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
    // Through the schema, so that a policy stored before a field existed gets that field's default.
    policy: policySchema.parse(credential.policy),
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
