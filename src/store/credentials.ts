// API keys (and, later, tokens of OAuth clients) of teams. Only prefix and SHA-256 are here.

import { type Kysely, sql } from 'kysely'
import type { Policy } from '../contract/policy.ts'
import type { Database } from './db.ts'
import type { Plan } from './teams.ts'

export type CredentialsTable = {
  id: string
  team_id: string
  kind: 'key' | 'oauth'
  name: string
  prefix: string
  hash: Buffer
  policy: Policy
  created_by: string | null
  created_at: Date
  last_used_at: Date | null
  revoked_at: Date | null
}

export type Credential = {
  id: string
  kind: 'key' | 'oauth'
  name: string
  prefix: string
  hash: Buffer
  policy: Policy
  createdBy: string | null
  lastUsedAt: Date | null
  revokedAt: Date | null
  teamId: string
  networkGroup: number
  plan: Plan
}

/** The credentials of these prefixes, whatever their state, with what their team brings. */
export async function findCredentials(db: Kysely<Database>, prefixes: string[]): Promise<Credential[]> {
  return await db
    .selectFrom('credentials')
    .innerJoin('teams', 'teams.id', 'credentials.team_id')
    .select([
      'credentials.id',
      'credentials.kind',
      'credentials.name',
      'credentials.prefix',
      'credentials.hash',
      'credentials.policy',
      'credentials.created_by as createdBy',
      'credentials.last_used_at as lastUsedAt',
      'credentials.revoked_at as revokedAt',
      'teams.id as teamId',
      'teams.network_group as networkGroup',
      'teams.plan',
    ])
    .where('credentials.prefix', '=', sql<string>`any(${prefixes})`)
    .execute()
}

export type NewCredential = {
  id: string
  teamId: string
  name: string
  prefix: string
  hash: Buffer
  policy: Policy
  createdBy: string | null
  createdAt: Date
}

export async function insertKey(db: Kysely<Database>, key: NewCredential): Promise<void> {
  await db
    .insertInto('credentials')
    .values({
      id: key.id,
      team_id: key.teamId,
      kind: 'key',
      name: key.name,
      prefix: key.prefix,
      hash: key.hash,
      policy: key.policy,
      created_by: key.createdBy,
      created_at: key.createdAt,
      last_used_at: null,
      revoked_at: null,
    })
    .execute()
}

export async function touchCredential(db: Kysely<Database>, id: string, at: Date): Promise<void> {
  await db.updateTable('credentials').set({ last_used_at: at }).where('id', '=', id).execute()
}

/** Answers whether a live credential of the team was there to revoke. */
export async function revokeCredential(
  db: Kysely<Database>,
  { teamId, id, at }: { teamId: string; id: string; at: Date },
): Promise<boolean> {
  const result = await db
    .updateTable('credentials')
    .set({ revoked_at: at })
    .where('team_id', '=', teamId)
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** What a credential may do, or might before it was revoked; null where there is none. */
export async function findPolicy(db: Kysely<Database>, id: string): Promise<Policy | null> {
  const row = await db.selectFrom('credentials').select('policy').where('id', '=', id).executeTakeFirst()
  return row?.policy ?? null
}
