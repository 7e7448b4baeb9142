// Mail addresses of people in a team.

import type { Kysely } from 'kysely'
import type { Database } from './schema.ts'

export type Contact = { name: string; email: string; teamName: string }

/** Returns null if the user has left the team. */
export async function findContact(
  db: Kysely<Database>,
  { teamId, userId }: { teamId: string; userId: string },
): Promise<Contact | null> {
  const row = await contactsOf(db, teamId).where('users.id', '=', userId).executeTakeFirst()
  return row ?? null
}

/** Returns the owner who joined first. */
export async function findOwnerContact(db: Kysely<Database>, teamId: string): Promise<Contact | null> {
  const row = await contactsOf(db, teamId)
    .where('memberships.role', '=', 'owner')
    .orderBy('memberships.joined_at')
    .orderBy('users.id')
    .limit(1)
    .executeTakeFirst()
  return row ?? null
}

function contactsOf(db: Kysely<Database>, teamId: string) {
  return db
    .selectFrom('memberships')
    .innerJoin('users', 'users.id', 'memberships.user_id')
    .innerJoin('teams', 'teams.id', 'memberships.team_id')
    .select(['users.name', 'users.email', 'teams.name as teamName'])
    .where('memberships.team_id', '=', teamId)
}
