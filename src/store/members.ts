// Members of teams and their roles. Hold the team's lock to change them.

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'
import type { Role } from './teams.ts'

export type MemberRecord = { userId: string; name: string; email: string; role: Role; joinedAt: Date }

/** In the order in which they joined. */
export async function listMembers(db: Kysely<Database>, teamId: string): Promise<MemberRecord[]> {
  return await db
    .selectFrom('memberships')
    .innerJoin('users', 'users.id', 'memberships.user_id')
    .select(['users.id as userId', 'users.name', 'users.email', 'memberships.role'])
    .select('memberships.joined_at as joinedAt')
    .where('memberships.team_id', '=', teamId)
    .orderBy('memberships.joined_at')
    .orderBy('users.id')
    .execute()
}

export async function findRole(
  db: Kysely<Database>,
  { teamId, userId }: { teamId: string; userId: string },
): Promise<Role | null> {
  const row = await db
    .selectFrom('memberships')
    .select('role')
    .where('team_id', '=', teamId)
    .where('user_id', '=', userId)
    .executeTakeFirst()
  return row?.role ?? null
}

export async function countMembers(db: Kysely<Database>, teamId: string): Promise<number> {
  const { count } = await db
    .selectFrom('memberships')
    .select((select) => select.fn.countAll<bigint>().as('count'))
    .where('team_id', '=', teamId)
    .executeTakeFirstOrThrow()
  return Number(count)
}

export async function countOwners(db: Kysely<Database>, teamId: string): Promise<number> {
  const { count } = await db
    .selectFrom('memberships')
    .select((select) => select.fn.countAll<bigint>().as('count'))
    .where('team_id', '=', teamId)
    .where('role', '=', 'owner')
    .executeTakeFirstOrThrow()
  return Number(count)
}

export async function isMember(
  db: Kysely<Database>,
  { teamId, email }: { teamId: string; email: string },
): Promise<boolean> {
  const row = await db
    .selectFrom('memberships')
    .innerJoin('users', 'users.id', 'memberships.user_id')
    .select('users.id')
    .where('memberships.team_id', '=', teamId)
    .where(sql<boolean>`lower(users.email collate "C") = lower(${email}::text collate "C")`)
    .executeTakeFirst()
  return row !== undefined
}

/** A person who is already a member keeps their role. */
export async function insertMember(
  db: Kysely<Database>,
  { teamId, userId, role, at }: { teamId: string; userId: string; role: Role; at: Date },
): Promise<void> {
  await db
    .insertInto('memberships')
    .values({ team_id: teamId, user_id: userId, role, joined_at: at })
    .onConflict((conflict) => conflict.columns(['team_id', 'user_id']).doNothing())
    .execute()
}

export async function changeRole(
  db: Kysely<Database>,
  { teamId, userId, role }: { teamId: string; userId: string; role: Role },
): Promise<void> {
  await db
    .updateTable('memberships')
    .set({ role })
    .where('team_id', '=', teamId)
    .where('user_id', '=', userId)
    .execute()
}

export async function deleteMember(
  db: Kysely<Database>,
  { teamId, userId }: { teamId: string; userId: string },
): Promise<void> {
  await db.deleteFrom('memberships').where('team_id', '=', teamId).where('user_id', '=', userId).execute()
}

export async function deleteMembers(db: Kysely<Database>, teamId: string): Promise<void> {
  await db.deleteFrom('memberships').where('team_id', '=', teamId).execute()
}
