// Stacks: named groups of a team's units.

import { type Kysely, sql } from 'kysely'
import type { Database } from './db.ts'

export type StacksTable = {
  id: string
  team_id: string
  name: string
  created_at: Date
  /** The window of those that sleep together; null while each unit has its own (spec 2.6). */
  sleep: string | null
}

export type StackRecord = { id: string; teamId: string; name: string; createdAt: Date; sleep: string | null }

/** Until the transaction ends nobody else admits, names or counts anything of this team. */
export async function lockTeam(db: Kysely<Database>, teamId: string): Promise<void> {
  await sql`select 1 from teams where id = ${teamId} for no key update`.execute(db)
}

export async function findStackByName(
  db: Kysely<Database>,
  { teamId, name }: { teamId: string; name: string },
): Promise<StackRecord | null> {
  const row = await db
    .selectFrom('stacks')
    .select(['id', 'team_id as teamId', 'name', 'created_at as createdAt', 'sleep'])
    .where('team_id', '=', teamId)
    .where('name', '=', name)
    .executeTakeFirst()
  return row ?? null
}

export async function insertStack(db: Kysely<Database>, stack: StackRecord): Promise<void> {
  await db
    .insertInto('stacks')
    .values({
      id: stack.id,
      team_id: stack.teamId,
      name: stack.name,
      created_at: stack.createdAt,
      sleep: stack.sleep,
    })
    .execute()
}
