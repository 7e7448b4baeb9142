// API keys and connected agents of teams. A key is stored as its prefix and SHA-256; an agent's tokens are in
// oauth-families.ts.

import { type Kysely, type Selectable, sql } from 'kysely'
import type { Policy } from '../contract/policy.ts'
import type { Database } from './schema.ts'
import { countLive } from './active-units.ts'
import { spentOnDay } from './usage.ts'
import type { ConnectedClient, CredentialsTable } from './tables/credentials.ts'

/**
 * For queries that join `credentials`: it is not revoked, and its creator is still a member. Does not check its
 * expiry.
 */
export const isLiveOfMember = sql<boolean>`
  credentials.revoked_at is null and exists (
    select from memberships
    where memberships.team_id = credentials.team_id and memberships.user_id = credentials.created_by
  )`

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
      client: null,
      client_key: null,
      connected_at: null,
    })
    .execute()
}

export type Connection = {
  teamId: string
  name: string
  policy: Policy
  createdBy: string
  client: ConnectedClient
  clientKey: string
  at: Date
}

/** Inserts a new agent of a person, for the client that they connect. */
export async function insertConnection(
  db: Kysely<Database>,
  { id, ...connection }: Connection & { id: string },
): Promise<void> {
  await db
    .insertInto('credentials')
    .values({
      id,
      team_id: connection.teamId,
      kind: 'oauth',
      name: connection.name,
      prefix: null,
      hash: null,
      policy: connection.policy,
      created_by: connection.createdBy,
      created_at: connection.at,
      last_used_at: null,
      user_agent: null,
      revoked_at: null,
      client: connection.client,
      client_key: connection.clientKey,
      connected_at: connection.at,
    })
    .execute()
}

/** Connects the agent again, with the policy that was agreed to now. */
export async function renewConnection(
  db: Kysely<Database>,
  { id, name, policy, client, at }: Pick<Connection, 'name' | 'policy' | 'client' | 'at'> & { id: string },
): Promise<void> {
  await db
    .updateTable('credentials')
    .set({ name, policy, client, connected_at: at })
    .where('id', '=', id)
    .execute()
}

/** Returns a person's agent of a client in a team, unless it is revoked. */
export async function findConnection(
  db: Kysely<Database>,
  { teamId, createdBy, clientKey }: Pick<Connection, 'teamId' | 'createdBy' | 'clientKey'>,
): Promise<{ id: string; name: string; policy: Policy } | null> {
  const row = await db
    .selectFrom('credentials')
    .select(['id', 'name', 'policy'])
    .where('team_id', '=', teamId)
    .where('created_by', '=', createdBy)
    .where('client_key', '=', clientKey)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return row ?? null
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

/** A credential, as its team sees it. */
export type AgentRecord = Omit<Selectable<CredentialsTable>, 'hash' | 'client_key'> & {
  creator_name: string | null
  creator_email: string | null
  spent_today: bigint
  live_units: bigint
}

/** Newest first, including revoked ones, with what they have spent on the day of `now`. */
export async function listAgents(
  db: Kysely<Database>,
  { teamId, now }: { teamId: string; now: Date },
): Promise<AgentRecord[]> {
  return await selectAgents(db, teamId, now).orderBy('credentials.id', 'desc').execute()
}

export async function findAgent(
  db: Kysely<Database>,
  { teamId, id, now }: { teamId: string; id: string; now: Date },
): Promise<AgentRecord | null> {
  return (await selectAgents(db, teamId, now).where('credentials.id', '=', id).executeTakeFirst()) ?? null
}

function selectAgents(db: Kysely<Database>, teamId: string, now: Date) {
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
      'credentials.client',
      'credentials.connected_at',
      'users.name as creator_name',
      'users.email as creator_email',
    ])
    .select(spentOnDay(sql`credentials.id`, now).as('spent_today'))
    .select(countLive(db, sql<string>`credentials.id`).$asScalar().as('live_units'))
    .where('credentials.team_id', '=', teamId)
}

/** Counts the team's credentials that can be used now. Hold the team's lock to decide by it. */
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

/** Returns the kind of a credential of any team, null if there is none. Reveals nothing else about it. */
export async function credentialKind(db: Kysely<Database>, id: string): Promise<'key' | 'oauth' | null> {
  const row = await db.selectFrom('credentials').select('kind').where('id', '=', id).executeTakeFirst()
  return row?.kind ?? null
}

export type CredentialChange = {
  teamId: string
  id: string
  /** Undefined fields stay unchanged, also within a policy. */
  name?: string | undefined
  policy?: { [Field in keyof Policy]?: Policy[Field] | undefined } | undefined
}

/** Changes a credential that is not revoked. */
export async function changeCredential(
  db: Kysely<Database>,
  { teamId, id, name, policy = {} }: CredentialChange,
): Promise<void> {
  await db
    .updateTable('credentials')
    // Kysely and JSON both leave out undefined fields.
    .set({ name, policy: sql<Policy>`policy || ${JSON.stringify(policy)}::jsonb` })
    .where('team_id', '=', teamId)
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .execute()
}

/** Returns whether there was a valid credential of the team to revoke. */
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

/** Returns the team's keys that this person created and that can be used now. */
export async function listLiveKeysOf(
  db: Kysely<Database>,
  { teamId, createdBy, now }: { teamId: string; createdBy: string; now: Date },
): Promise<{ id: string; name: string; prefix: string }[]> {
  return await db
    .selectFrom('credentials')
    .select(['id', 'name', 'prefix'])
    .$narrowType<{ prefix: string }>()
    .where('team_id', '=', teamId)
    .where('created_by', '=', createdBy)
    .where('kind', '=', 'key')
    .where(isLive(now))
    .orderBy('id')
    .execute()
}

/** Revokes the OAuth clients that this person connected, since they act for the person. */
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

/** Revokes credentials of any kind. */
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
