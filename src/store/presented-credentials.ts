// What a call presents: the key, or the agent of the access token, of which it sends the prefix in every call.

import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Policy } from '../contract/policy.ts'
import { prepare } from './prepared.ts'
import type { Database } from './schema.ts'
import type { Plan } from './teams.ts'

export type Credential = {
  id: string
  kind: 'key' | 'oauth'
  name: string
  /** The prefix of the key or the access token. */
  prefix: string
  hash: Buffer
  /** The expiry of an access token, which is before that of its agent. */
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

/** Returns a key or an agent by its id, in any state. An agent of a person who is no longer a member is not found. */
export async function findCredentialById(db: Kysely<Database>, id: string): Promise<Credential | null> {
  const row = await db
    .selectFrom('credentials')
    .innerJoin('teams', 'teams.id', 'credentials.team_id')
    .select([
      'credentials.id',
      'credentials.kind',
      'credentials.name',
      sql<string>`coalesce(credentials.prefix, '')`.as('prefix'),
      sql<Buffer>`coalesce(credentials.hash, '')`.as('hash'),
      sql<null>`null`.as('tokenUntil'),
      sql<null>`null`.as('tokenUsedAt'),
      sql<string | null>`credentials.client->>'name'`.as('clientName'),
      'credentials.policy',
      'credentials.created_by as createdBy',
      'credentials.last_used_at as lastUsedAt',
      'credentials.revoked_at as revokedAt',
      'teams.id as teamId',
      'teams.network_group as networkGroup',
      'teams.plan',
    ])
    .where('credentials.id', '=', id)
    .where((where) =>
      where.or([
        where('credentials.kind', '=', 'key'),
        where.exists(
          where
            .selectFrom('memberships')
            .select('memberships.user_id')
            .whereRef('memberships.team_id', '=', 'credentials.team_id')
            .whereRef('memberships.user_id', '=', 'credentials.created_by'),
        ),
      ]),
    )
    .executeTakeFirst()
  return row ?? null
}

/** Returns the ids of the newest credentials of the team that a unit belongs to, those of the unit's creator first. */
export async function credentialsOfUnit(
  db: Kysely<Database>,
  { unitId, limit }: { unitId: string; limit: number },
): Promise<string[]> {
  const rows = await db
    .selectFrom('units')
    .innerJoin('credentials', 'credentials.team_id', 'units.team_id')
    .select('credentials.id')
    .where('units.id', '=', unitId)
    .where('credentials.revoked_at', 'is', null)
    .orderBy(sql`credentials.id = units.created_by->>'id' desc nulls last`)
    .orderBy('credentials.id', 'desc')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

type FindByPrefixes = (db: Kysely<Database>, prefixes: string[]) => Promise<Credential[]>

/** Returns the keys with these prefixes, in any state, with the data of their team. */
export const findKeys = findByPrefixes({ one: 'key_of_prefix', several: 'keys_of_prefixes' }, selectKeys)

/** Returns the agents of these access tokens. Agents of a person who is no longer a member are not found. */
export const findByAccessTokens = findByPrefixes(
  { one: 'agent_of_token', several: 'agents_of_tokens' },
  selectAgentsOfTokens,
)

/** Prepares both statements under these names: an array is planned each time, and most calls look up a single prefix. */
function findByPrefixes(
  names: { one: string; several: string },
  select: (db: Kysely<Database>, prefix: RawBuilder<string>) => RawBuilder<Credential>,
): FindByPrefixes {
  const findOne = prepare<Credential, { prefix: string }>(names.one, ['prefix'], ({ prefix }, db) =>
    select(db, prefix),
  )
  const findSeveral = prepare<Credential, { prefixes: string[] }>(
    names.several,
    ['prefixes'],
    ({ prefixes }, db) => select(db, sql<string>`any(${prefixes})`),
  )
  return async (db, prefixes) => {
    const [prefix] = prefixes
    return prefix !== undefined && prefixes.length === 1
      ? await findOne(db, { prefix })
      : await findSeveral(db, { prefixes })
  }
}

function selectKeys(db: Kysely<Database>, prefix: RawBuilder<string>): RawBuilder<Credential> {
  const keys = db
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
    .where('credentials.prefix', '=', prefix)
  return sql`${keys}`
}

function selectAgentsOfTokens(db: Kysely<Database>, prefix: RawBuilder<string>): RawBuilder<Credential> {
  const agents = db
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
    .where('oauth_tokens.prefix', '=', prefix)
    .where('oauth_tokens.kind', '=', 'access')
  return sql`${agents}`
}
