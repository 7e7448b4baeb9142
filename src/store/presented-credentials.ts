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

/** Returns the keys with these prefixes, in any state, with the data of their team. */
export async function findKeys(db: Kysely<Database>, prefixes: string[]): Promise<Credential[]> {
  const [prefix] = prefixes
  return prefix !== undefined && prefixes.length === 1
    ? await keyOf(db, { prefix })
    : await keysOf(db, { prefixes })
}

const keyOf = prepare<Credential, { prefix: string }>('key_of_prefix', ['prefix'], ({ prefix }, db) =>
  selectKeys(db, prefix),
)

/** An array is planned each time, so a single one, as most calls look up, is none. */
const keysOf = prepare<Credential, { prefixes: string[] }>(
  'keys_of_prefixes',
  ['prefixes'],
  ({ prefixes }, db) => selectKeys(db, sql<string>`any(${prefixes})`),
)

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

/** Returns the agents of these access tokens. Agents of a person who is no longer a member are not found. */
export async function findByAccessTokens(db: Kysely<Database>, prefixes: string[]): Promise<Credential[]> {
  const [prefix] = prefixes
  return prefix !== undefined && prefixes.length === 1
    ? await agentOf(db, { prefix })
    : await agentsOf(db, { prefixes })
}

const agentOf = prepare<Credential, { prefix: string }>('agent_of_token', ['prefix'], ({ prefix }, db) =>
  selectAgentsOfTokens(db, prefix),
)

const agentsOf = prepare<Credential, { prefixes: string[] }>(
  'agents_of_tokens',
  ['prefixes'],
  ({ prefixes }, db) => selectAgentsOfTokens(db, sql<string>`any(${prefixes})`),
)

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
