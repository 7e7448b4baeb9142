// API keys (and, later, tokens of OAuth clients) of teams. Only prefix and SHA-256 are here.

import { type Kysely, type Selectable, sql } from 'kysely'
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
  /** Of the client that used it then. */
  user_agent: string | null
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
      user_agent: null,
      revoked_at: null,
    })
    .execute()
}

export async function touchCredential(
  db: Kysely<Database>,
  { id, at, userAgent }: { id: string; at: Date; userAgent: string | null },
): Promise<void> {
  await db
    .updateTable('credentials')
    .set({ last_used_at: at, user_agent: userAgent })
    .where('id', '=', id)
    .execute()
}

/** A credential as its team sees it. */
export type AgentRecord = Omit<Selectable<CredentialsTable>, 'hash'> & {
  creator_name: string | null
  creator_email: string | null
}

/** Newest first; those that were revoked, too. */
export async function listAgents(db: Kysely<Database>, teamId: string): Promise<AgentRecord[]> {
  return await selectAgents(db, teamId).orderBy('credentials.id', 'desc').execute()
}

export async function findAgent(
  db: Kysely<Database>,
  { teamId, id }: { teamId: string; id: string },
): Promise<AgentRecord | null> {
  return (await selectAgents(db, teamId).where('credentials.id', '=', id).executeTakeFirst()) ?? null
}

function selectAgents(db: Kysely<Database>, teamId: string) {
  return db
    .selectFrom('credentials')
    .leftJoin('users', 'users.id', 'credentials.created_by')
    .select([
      'credentials.id',
      'credentials.team_id',
      'credentials.kind',
      'credentials.name',
      'credentials.prefix',
      'credentials.policy',
      'credentials.created_by',
      'credentials.created_at',
      'credentials.last_used_at',
      'credentials.user_agent',
      'credentials.revoked_at',
      'users.name as creator_name',
      'users.email as creator_email',
    ])
    .where('credentials.team_id', '=', teamId)
}

/** How many of a team's credentials can be used now. Whoever decides by it has the team locked. */
export async function countLiveCredentials(
  db: Kysely<Database>,
  { teamId, now }: { teamId: string; now: Date },
): Promise<number> {
  const { count } = await db
    .selectFrom('credentials')
    .select((select) => select.fn.countAll<bigint>().as('count'))
    .where('team_id', '=', teamId)
    .where(isLive(now))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Of a credential of whatever team, null where there is none. Answers nothing else about it. */
export async function credentialKind(db: Kysely<Database>, id: string): Promise<'key' | 'oauth' | null> {
  const row = await db.selectFrom('credentials').select('kind').where('id', '=', id).executeTakeFirst()
  return row?.kind ?? null
}

export type CredentialChange = {
  teamId: string
  id: string
  /** What is undefined stays as it is, of a policy too. */
  name?: string | undefined
  policy?: { [Field in keyof Policy]?: Policy[Field] | undefined } | undefined
}

/** Of one that is not revoked. */
export async function changeCredential(
  db: Kysely<Database>,
  { teamId, id, name, policy = {} }: CredentialChange,
): Promise<void> {
  await db
    .updateTable('credentials')
    // Neither Kysely nor JSON says anything of what is undefined.
    .set({ name, policy: sql<Policy>`policy || ${JSON.stringify(policy)}::jsonb` })
    .where('team_id', '=', teamId)
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .execute()
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

/** Keys of the team that this person made and that can be used now. */
export async function listLiveKeysOf(
  db: Kysely<Database>,
  { teamId, createdBy, now }: { teamId: string; createdBy: string; now: Date },
): Promise<{ id: string; name: string; prefix: string }[]> {
  return await db
    .selectFrom('credentials')
    .select(['id', 'name', 'prefix'])
    .where('team_id', '=', teamId)
    .where('created_by', '=', createdBy)
    .where('kind', '=', 'key')
    .where(isLive(now))
    .orderBy('id')
    .execute()
}

/** The OAuth clients that this person connected: they act in his place. */
export async function revokeClientsOf(
  db: Kysely<Database>,
  { teamId, createdBy, at }: { teamId: string; createdBy: string; at: Date },
): Promise<void> {
  await db
    .updateTable('credentials')
    .set({ revoked_at: at })
    .where('team_id', '=', teamId)
    .where('created_by', '=', createdBy)
    .where('kind', '=', 'oauth')
    .where('revoked_at', 'is', null)
    .execute()
}

/** Whatever kind they are. */
export async function revokeCredentials(
  db: Kysely<Database>,
  { teamId, at }: { teamId: string; at: Date },
): Promise<void> {
  await db
    .updateTable('credentials')
    .set({ revoked_at: at })
    .where('team_id', '=', teamId)
    .where('revoked_at', 'is', null)
    .execute()
}

function isLive(now: Date) {
  return sql<boolean>`revoked_at is null and coalesce((policy->>'expiresAt')::timestamptz > ${now}, true)`
}
