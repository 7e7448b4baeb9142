// Users, teams and memberships.

import { type Kysely, sql } from 'kysely'
import type { EgressRules } from '../lib/egress/rules.ts'
import type { Database } from './schema.ts'
import type { Plan, Role, TeamsTable, UsersTable } from './tables/teams.ts'

export type { Plan, Role } from './tables/teams.ts'

export type NewUser = Omit<UsersTable, 'email_verified' | 'created_at'> & { createdAt: Date }

/** The address was verified by a link sent to it, or the operator vouches for it. */
export async function insertUser(db: Kysely<Database>, user: NewUser): Promise<void> {
  const { createdAt, ...fields } = user
  await db
    .insertInto('users')
    .values({ ...fields, email_verified: true, created_at: createdAt })
    .execute()
}

/** Returns the oldest account: the one created at the first start. */
export async function findFirstUser(db: Kysely<Database>): Promise<{ id: string; email: string } | null> {
  const row = await db.selectFrom('users').select(['id', 'email']).orderBy('id').limit(1).executeTakeFirst()
  return row ?? null
}

export type NewTeam = {
  id: string
  slug: string
  name: string
  personal: boolean
  plan: Plan
  paysAsItGoes: boolean
  region?: TeamsTable['region'] | undefined
  currency?: TeamsTable['currency'] | undefined
  ownerId: string
  createdAt: Date
}

/** Inserts a team and its owner's membership. */
export async function insertTeam(db: Kysely<Database>, team: NewTeam): Promise<void> {
  await db
    .insertInto('teams')
    .values({
      id: team.id,
      slug: team.slug,
      name: team.name,
      personal: team.personal,
      plan: team.plan,
      region: team.region ?? 'paris',
      currency: team.currency ?? 'eur',
      pays_as_it_goes: team.paysAsItGoes,
      created_at: team.createdAt,
    })
    .execute()
  await db
    .insertInto('memberships')
    .values({ team_id: team.id, user_id: team.ownerId, role: 'owner', joined_at: team.createdAt })
    .execute()
}

export type Membership = {
  teamId: string
  teamName: string
  plan: Plan
  networkGroup: number
  role: Role
}

/** Returns the teams of a user, the personal one first. */
export async function listMemberships(db: Kysely<Database>, userId: string): Promise<Membership[]> {
  return await db
    .selectFrom('memberships')
    .innerJoin('teams', 'teams.id', 'memberships.team_id')
    .select([
      'teams.id as teamId',
      'teams.name as teamName',
      'teams.plan',
      'teams.network_group as networkGroup',
      'memberships.role',
    ])
    .where('memberships.user_id', '=', userId)
    .orderBy('teams.personal', 'desc')
    .orderBy('teams.id')
    .execute()
}

/** A team, as one of its members sees it. */
export type TeamOfUser = {
  id: string
  slug: string
  name: string
  personal: boolean
  plan: Plan
  region: TeamsTable['region']
  currency: TeamsTable['currency']
  paysAsItGoes: boolean
  /** The most that its units may reach; null: everything. */
  egress: EgressRules | null
  role: Role
}

/** Returns the teams of a user, the personal one first. */
export async function listTeamsOfUser(db: Kysely<Database>, userId: string): Promise<TeamOfUser[]> {
  return await teamsOf(db, userId).orderBy('teams.personal', 'desc').orderBy('teams.id').execute()
}

/** Returns null unless the user is a member. */
export async function findTeamOfUser(
  db: Kysely<Database>,
  { userId, id }: { userId: string; id: string },
): Promise<TeamOfUser | null> {
  return (await teamsOf(db, userId).where('teams.id', '=', id).executeTakeFirst()) ?? null
}

function teamsOf(db: Kysely<Database>, userId: string) {
  return db
    .selectFrom('memberships')
    .innerJoin('teams', 'teams.id', 'memberships.team_id')
    .select([
      'teams.id',
      'teams.slug',
      'teams.name',
      'teams.personal',
      'teams.plan',
      'teams.region',
      'teams.currency',
      'teams.pays_as_it_goes as paysAsItGoes',
      'teams.egress',
      'memberships.role',
    ])
    .where('memberships.user_id', '=', userId)
}

/** Whether the id belongs to a team that is not deleted. Reveals nothing else about it. */
export async function teamExists(db: Kysely<Database>, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('teams')
    .select('id')
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return row !== undefined
}

/** Undefined fields stay unchanged. */
export type TeamChange = {
  name?: string | undefined
  region?: TeamsTable['region'] | undefined
  currency?: TeamsTable['currency'] | undefined
  plan?: Plan | undefined
  paysAsItGoes?: boolean | undefined
  /** Null: everything. */
  egress?: EgressRules | null | undefined
}

export async function changeTeam(
  db: Kysely<Database>,
  { id, name, region, currency, plan, paysAsItGoes, egress }: TeamChange & { id: string },
): Promise<void> {
  await db
    .updateTable('teams')
    .set((team) => ({
      name: name ?? team.ref('name'),
      region: region ?? team.ref('region'),
      currency: currency ?? team.ref('currency'),
      plan: plan ?? team.ref('plan'),
      pays_as_it_goes: paysAsItGoes ?? team.ref('pays_as_it_goes'),
      egress: egress === undefined ? team.ref('egress') : egress,
    }))
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .execute()
}

/** Counts the existing units, in any state. Hold the team's lock to decide by it. */
export async function countUnitsOfTeam(db: Kysely<Database>, teamId: string): Promise<number> {
  const { count } = await db
    .selectFrom('units')
    .select((select) => select.fn.countAll<bigint>().as('count'))
    .where('team_id', '=', teamId)
    .where('state', '<>', 'destroyed')
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Its row stays for the audit log and its costs. Hold the team's lock. */
export async function deleteTeam(db: Kysely<Database>, { id, at }: { id: string; at: Date }): Promise<void> {
  await db.updateTable('teams').set({ deleted_at: at }).where('id', '=', id).execute()
}

/** All teams, for the operator; oldest first. */
export async function listTeams(
  db: Kysely<Database>,
): Promise<
  (Pick<TeamOfUser, 'id' | 'name' | 'plan' | 'paysAsItGoes'> & { members: number; owners: string[] })[]
> {
  return await db
    .selectFrom('teams')
    .leftJoin('memberships', 'memberships.team_id', 'teams.id')
    .leftJoin('users', 'users.id', 'memberships.user_id')
    .select(['teams.id', 'teams.name', 'teams.plan', 'teams.pays_as_it_goes as paysAsItGoes'])
    .select([
      sql<number>`count(users.id)::int`.as('members'),
      sql<
        string[]
      >`coalesce(array_agg(users.email order by users.id) filter (where memberships.role = 'owner'), '{}')`.as(
        'owners',
      ),
    ])
    .where('teams.deleted_at', 'is', null)
    .groupBy('teams.id')
    .orderBy('teams.id')
    .execute()
}

export async function findTeamByIdOrSlug(db: Kysely<Database>, text: string): Promise<{ id: string } | null> {
  const row = await db
    .selectFrom('teams')
    .select('id')
    .where((where) => where.or([where('id', '=', text), where('slug', '=', text)]))
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return row ?? null
}
