// People; their teams are in teams.ts.

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'

export type UserRecord = { id: string; email: string; name: string; emailVerified: boolean; admin: boolean }

export async function findUser(db: Kysely<Database>, id: string): Promise<UserRecord | null> {
  const row = await users(db).where('id', '=', id).executeTakeFirst()
  return row ?? null
}

/** Locks the person until the transaction ends: no other transaction creates anything that is counted for them. */
export async function lockUser(db: Kysely<Database>, id: string): Promise<void> {
  await sql`select 1 from users where id = ${id} for no key update`.execute(db)
}

/** Finds an account by its address, which may be unverified. */
export async function findUserOfAddress(db: Kysely<Database>, email: string): Promise<UserRecord | null> {
  const row = await users(db).where(sql`lower(email)`, '=', email.toLowerCase()).executeTakeFirst()
  return row ?? null
}

/** Returns the admin with the oldest account. */
export async function findFirstAdmin(db: Kysely<Database>): Promise<UserRecord | null> {
  const row = await users(db).where('admin', '=', true).orderBy('id').limit(1).executeTakeFirst()
  return row ?? null
}

export async function renameUser(
  db: Kysely<Database>,
  { id, name }: { id: string; name: string },
): Promise<void> {
  await db.updateTable('users').set({ name }).where('id', '=', id).execute()
}

export async function setAdmin(
  db: Kysely<Database>,
  { id, admin }: { id: string; admin: boolean },
): Promise<void> {
  await db.updateTable('users').set({ admin }).where('id', '=', id).execute()
}

function users(db: Kysely<Database>) {
  return db.selectFrom('users').select(['id', 'email', 'name', 'email_verified as emailVerified', 'admin'])
}

/** Locks the address until the transaction ends: other transactions about its account wait. */
export async function lockAddress(db: Kysely<Database>, email: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${email.toLowerCase()}, 0))`.execute(db)
}

export async function verifyAddress(db: Kysely<Database>, id: string): Promise<void> {
  await db.updateTable('users').set({ email_verified: true }).where('id', '=', id).execute()
}
