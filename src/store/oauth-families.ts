// OAuth tokens. A family is what one sign-in gave a program: successive pairs of an access token and a refresh token.
// Only prefixes and SHA-256 are stored, and the sealed key from which the tokens are derived.

import { type Kysely, sql } from 'kysely'
import { isLiveOfMember } from './credentials.ts'
import type { Database } from './schema.ts'

export type OauthFamily = {
  id: string
  credentialId: string
  clientId: string
  sealedKey: Buffer
  generation: number
  refreshUntil: Date
  revokedAt: Date | null
}

export async function insertFamily(
  db: Kysely<Database>,
  family: Omit<OauthFamily, 'generation' | 'revokedAt'> & { at: Date },
): Promise<void> {
  await db
    .insertInto('oauth_families')
    .values({
      id: family.id,
      credential_id: family.credentialId,
      client_id: family.clientId,
      sealed_key: family.sealedKey,
      generation: 0,
      created_at: family.at,
      used_at: family.at,
      refresh_until: family.refreshUntil,
      revoked_at: null,
    })
    .execute()
}

export type TokenRow = { prefix: string; hash: Buffer }

/** Inserts a pair of a family: `accessUntil` is the expiry of its access token. */
export async function insertPair(
  db: Kysely<Database>,
  pair: { familyId: string; generation: number; access: TokenRow; refresh: TokenRow; accessUntil: Date },
): Promise<void> {
  const { familyId: family_id, generation, access, refresh, accessUntil } = pair
  const common = { family_id, generation, used_at: null, retired_at: null }
  const row = ({ prefix, hash }: TokenRow) => ({ prefix, hash, ...common })
  await db
    .insertInto('oauth_tokens')
    .values([
      { ...row(access), kind: 'access', expires_at: accessUntil },
      { ...row(refresh), kind: 'refresh', expires_at: null },
    ])
    .execute()
}

export type OauthToken = {
  hash: Buffer
  kind: 'access' | 'refresh'
  generation: number
  expiresAt: Date | null
  retiredAt: Date | null
  family: OauthFamily
  /** False if the agent or the person's membership has ended. */
  isAgentLive: boolean
  policyExpiresAt: string | null
}

/** In any state, with its family and whether its agent may still act. */
export async function findOauthToken(db: Kysely<Database>, prefix: string): Promise<OauthToken | null> {
  const row = await db
    .selectFrom('oauth_tokens')
    .innerJoin('oauth_families', 'oauth_families.id', 'oauth_tokens.family_id')
    .innerJoin('credentials', 'credentials.id', 'oauth_families.credential_id')
    .select([
      'oauth_tokens.hash',
      'oauth_tokens.kind',
      'oauth_tokens.generation',
      'oauth_tokens.expires_at as expiresAt',
      'oauth_tokens.retired_at as retiredAt',
      'oauth_families.id',
      'oauth_families.credential_id as credentialId',
      'oauth_families.client_id as clientId',
      'oauth_families.sealed_key as sealedKey',
      'oauth_families.generation as current',
      'oauth_families.refresh_until as refreshUntil',
      'oauth_families.revoked_at as revokedAt',
      isLiveOfMember.as('isAgentLive'),
      sql<string | null>`credentials.policy->>'expiresAt'`.as('policyExpiresAt'),
    ])
    .where('oauth_tokens.prefix', '=', prefix)
    .executeTakeFirst()
  if (!row) return null
  const { hash, kind, generation, expiresAt, retiredAt, isAgentLive, policyExpiresAt, current, ...family } =
    row
  return {
    hash,
    kind,
    generation,
    expiresAt,
    retiredAt,
    isAgentLive,
    policyExpiresAt,
    family: { ...family, generation: current },
  }
}

/** Returns the access token of a generation, null if it was deleted. */
export async function findAccessOf(
  db: Kysely<Database>,
  { familyId, generation }: { familyId: string; generation: number },
): Promise<{ hash: Buffer; expiresAt: Date; usedAt: Date | null } | null> {
  const row = await db
    .selectFrom('oauth_tokens')
    .select(['hash', 'expires_at as expiresAt', 'used_at as usedAt'])
    .where('family_id', '=', familyId)
    .where('generation', '=', generation)
    .where('kind', '=', 'access')
    .executeTakeFirst()
  return row && row.expiresAt !== null ? { ...row, expiresAt: row.expiresAt } : null
}

/** Advances a live family to the next generation: one of all calls with the current token wins. */
export async function advanceFamily(
  db: Kysely<Database>,
  { id, from, at, refreshUntil }: { id: string; from: number; at: Date; refreshUntil: Date },
): Promise<boolean> {
  const result = await db
    .updateTable('oauth_families')
    .set({ generation: from + 1, used_at: at, refresh_until: refreshUntil })
    .where('id', '=', id)
    .where('generation', '=', from)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  if (result.numUpdatedRows !== 1n) return false
  await db
    .updateTable('oauth_tokens')
    .set({ retired_at: at })
    .where('family_id', '=', id)
    .where('generation', '=', from)
    .where('kind', '=', 'refresh')
    .execute()
  return true
}

export async function revokeFamily(
  db: Kysely<Database>,
  { id, at }: { id: string; at: Date },
): Promise<void> {
  await db
    .updateTable('oauth_families')
    .set({ revoked_at: at })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .execute()
}

/** Revokes all families of an agent but the `keep` used last. */
export async function revokeSurplusFamilies(
  db: Kysely<Database>,
  { credentialId, keep, at }: { credentialId: string; keep: number; at: Date },
): Promise<void> {
  await sql`
    update oauth_families set revoked_at = ${at} where id in (
      select id from oauth_families
      where credential_id = ${credentialId} and revoked_at is null
      order by used_at desc, id desc offset ${keep}
    )
  `.execute(db)
}

/** Records only the first use. */
export async function markAccessUsed(
  db: Kysely<Database>,
  { prefix, at }: { prefix: string; at: Date },
): Promise<void> {
  await db
    .updateTable('oauth_tokens')
    .set({ used_at: at })
    .where('prefix', '=', prefix)
    .where('used_at', 'is', null)
    .execute()
}

/** Deletes access tokens and families that cannot be used any more. */
export async function deleteEndedTokens(
  db: Kysely<Database>,
  { endedBefore }: { endedBefore: Date },
): Promise<void> {
  await db.deleteFrom('oauth_families').where('refresh_until', '<', endedBefore).execute()
  await db.deleteFrom('oauth_families').where('revoked_at', '<', endedBefore).execute()
  // The current one still shows the rest of its pair's lifetime.
  await sql`
    delete from oauth_tokens token using oauth_families family
    where family.id = token.family_id and token.expires_at < ${endedBefore} and token.generation < family.generation
  `.execute(db)
}
