// Requests of programs that wait for a person's consent, and the codes they get, which are exchanged for tokens once.

import type { Kysely } from 'kysely'
import { isLiveOfMember } from './credentials.ts'
import type { Database } from './schema.ts'

export type OauthRequest = {
  hash: Buffer
  clientId: string
  redirectUri: string
  state: string | null
  codeChallenge: string
  sessionId: string | null
  expiresAt: Date
}

export async function insertOauthRequest(
  db: Kysely<Database>,
  request: Omit<OauthRequest, 'sessionId'> & { prefix: string },
): Promise<void> {
  await db
    .insertInto('oauth_requests')
    .values({
      prefix: request.prefix,
      hash: request.hash,
      client_id: request.clientId,
      redirect_uri: request.redirectUri,
      state: request.state,
      code_challenge: request.codeChallenge,
      session_id: null,
      expires_at: request.expiresAt,
    })
    .execute()
}

export async function findOauthRequest(db: Kysely<Database>, prefix: string): Promise<OauthRequest | null> {
  const row = await db
    .selectFrom('oauth_requests')
    .select([
      'hash',
      'client_id as clientId',
      'redirect_uri as redirectUri',
      'state',
      'code_challenge as codeChallenge',
      'session_id as sessionId',
      'expires_at as expiresAt',
    ])
    .where('prefix', '=', prefix)
    .executeTakeFirst()
  return row ?? null
}

/** The first session that opens it keeps it. Returns whether it belongs to this one. */
export async function claimOauthRequest(
  db: Kysely<Database>,
  { prefix, sessionId }: { prefix: string; sessionId: string },
): Promise<boolean> {
  const result = await db
    .updateTable('oauth_requests')
    .set({ session_id: sessionId })
    .where('prefix', '=', prefix)
    .where((where) => where.or([where('session_id', 'is', null), where('session_id', '=', sessionId)]))
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** Of concurrent calls one wins. Returns whether it was there. */
export async function deleteOauthRequest(db: Kysely<Database>, prefix: string): Promise<boolean> {
  const result = await db.deleteFrom('oauth_requests').where('prefix', '=', prefix).executeTakeFirst()
  return result.numDeletedRows === 1n
}

export type OauthCode = {
  prefix: string
  hash: Buffer
  clientId: string
  redirectUri: string
  codeChallenge: string
  credentialId: string
  expiresAt: Date
  usedAt: Date | null
  familyId: string | null
  /** It is not revoked, and its person still belongs to the team. */
  isAgentLive: boolean
}

export async function insertOauthCode(
  db: Kysely<Database>,
  code: Omit<OauthCode, 'usedAt' | 'familyId' | 'isAgentLive'>,
): Promise<void> {
  await db
    .insertInto('oauth_codes')
    .values({
      prefix: code.prefix,
      hash: code.hash,
      client_id: code.clientId,
      redirect_uri: code.redirectUri,
      code_challenge: code.codeChallenge,
      credential_id: code.credentialId,
      expires_at: code.expiresAt,
      used_at: null,
      family_id: null,
    })
    .execute()
}

export async function findOauthCode(db: Kysely<Database>, prefix: string): Promise<OauthCode | null> {
  const row = await db
    .selectFrom('oauth_codes')
    .innerJoin('credentials', 'credentials.id', 'oauth_codes.credential_id')
    .select([
      'oauth_codes.prefix',
      'oauth_codes.hash',
      'oauth_codes.client_id as clientId',
      'redirect_uri as redirectUri',
      'code_challenge as codeChallenge',
      'credential_id as credentialId',
      'expires_at as expiresAt',
      'used_at as usedAt',
      'family_id as familyId',
      isLiveOfMember.as('isAgentLive'),
    ])
    .where('oauth_codes.prefix', '=', prefix)
    .executeTakeFirst()
  return row ?? null
}

/** Of concurrent calls one wins. Returns whether this call used it up. Its family must exist already. */
export async function useOauthCode(
  db: Kysely<Database>,
  { prefix, familyId, at }: { prefix: string; familyId: string; at: Date },
): Promise<boolean> {
  const result = await db
    .updateTable('oauth_codes')
    .set({ used_at: at, family_id: familyId })
    .where('prefix', '=', prefix)
    .where('used_at', 'is', null)
    .where('expires_at', '>', at)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

export async function deleteExpiredRequests(
  db: Kysely<Database>,
  { requestsBefore, codesBefore }: { requestsBefore: Date; codesBefore: Date },
): Promise<void> {
  await db.deleteFrom('oauth_requests').where('expires_at', '<', requestsBefore).execute()
  await db.deleteFrom('oauth_codes').where('expires_at', '<', codesBefore).execute()
}
