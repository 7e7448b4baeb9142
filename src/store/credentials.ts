// API keys and connected agents of teams. Of keys only prefix and SHA-256 are here; an agent's tokens are in oauth-families.ts.

import { type Kysely, type Selectable, sql } from 'kysely'
import type { Policy } from '../contract/policy.ts'
import type { Database } from './db.ts'
import type { Plan } from './teams.ts'

export type CredentialsTable = {
  id: string
  team_id: string
  kind: 'key' | 'oauth'
  name: string
  /** Of a key alone. */
  prefix: string | null
  hash: Buffer | null
  policy: Policy
  created_by: string | null
  created_at: Date
  last_used_at: Date | null
  /** Of the client that used it then. */
  user_agent: string | null
  revoked_at: Date | null
  /** Of an agent: the program as it described itself when it was connected. */
  client: ConnectedClient | null
  /** Tells which programs are one client (domain/oauth/client-key.ts). */
  client_key: string | null
  connected_at: Date | null
}

export type ConnectedClient = { id: string; name: string | null; uri: string | null; icon: string | null }

export type Credential = {
  id: string
  kind: 'key' | 'oauth'
  name: string
  /** Of the key or the access token. */
  prefix: string
  hash: Buffer
  /** Of an access token, which ends sooner than its agent. */
  tokenUntil: Date | null
  tokenUsedAt: Date | null
  clientName: string | null
  policy: Policy
  createdBy: string | null
  lastUsedAt: Date | null
  revokedAt: Date | null
  teamId: string
  networkGroup: number
  plan: Plan
}

/** The keys of these prefixes, whatever their state, with what their team brings. */
export async function findKeys(db: Kysely<Database>, prefixes: string[]): Promise<Credential[]> {
  return await db
    .selectFrom('credentials')
    .innerJoin('teams', 'teams.id', 'credentials.team_id')
    .select([
      'credentials.id',
      'credentials.kind',
      'credentials.name',
      'credentials.prefix',
      'credentials.hash',
      sql<null>`null`.as('tokenUntil'),
      sql<null>`null`.as('tokenUsedAt'),
      sql<null>`null`.as('clientName'),
      'credentials.policy',
      'credentials.created_by as createdBy',
      'credentials.last_used_at as lastUsedAt',
      'credentials.revoked_at as revokedAt',
      'teams.id as teamId',
      'teams.network_group as networkGroup',
      'teams.plan',
    ])
    .where('credentials.prefix', '=', sql<string>`any(${prefixes})`)
    .$narrowType<{ prefix: string; hash: Buffer }>()
    .execute()
}

/** For queries that join `credentials`: it is not revoked, and who made it is a member still. Its own expiry is not looked at. */
export const isLiveOfMember = sql<boolean>`
  credentials.revoked_at is null and exists (
    select from memberships
    where memberships.team_id = credentials.team_id and memberships.user_id = credentials.created_by
  )`

/**
 * The agents that these access tokens are of. Those of a person who is no member any more are not found, whatever else
 * has ended them.
 */
export async function findByAccessTokens(db: Kysely<Database>, prefixes: string[]): Promise<Credential[]> {
  return await db
    .selectFrom('oauth_tokens')
    .innerJoin('oauth_families', 'oauth_families.id', 'oauth_tokens.family_id')
    .innerJoin('credentials', 'credentials.id', 'oauth_families.credential_id')
    .innerJoin('memberships', (join) =>
      join
        .onRef('memberships.team_id', '=', 'credentials.team_id')
        .onRef('memberships.user_id', '=', 'credentials.created_by'),
    )
    .innerJoin('teams', 'teams.id', 'credentials.team_id')
    .select([
      'credentials.id',
      'credentials.kind',
      'credentials.name',
      'oauth_tokens.prefix',
      'oauth_tokens.hash',
      'oauth_tokens.expires_at as tokenUntil',
      'oauth_tokens.used_at as tokenUsedAt',
      sql<string | null>`credentials.client->>'name'`.as('clientName'),
      'credentials.policy',
      'credentials.created_by as createdBy',
      'credentials.last_used_at as lastUsedAt',
      sql<Date | null>`coalesce(credentials.revoked_at, oauth_families.revoked_at)`.as('revokedAt'),
      'teams.id as teamId',
      'teams.network_group as networkGroup',
      'teams.plan',
    ])
    .where('oauth_tokens.prefix', '=', sql<string>`any(${prefixes})`)
    .where('oauth_tokens.kind', '=', 'access')
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

/** A new agent of a person's, by the client that they connect. */
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

/** The agent is connected anew, and may from now on what was agreed to now. */
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

/** A person's agent by a client in a team, unless it was revoked. */
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

/** A credential as its team sees it. */
export type AgentRecord = Omit<Selectable<CredentialsTable>, 'hash' | 'client_key'> & {
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
      'credentials.client',
      'credentials.connected_at',
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
    .$narrowType<{ prefix: string }>()
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
