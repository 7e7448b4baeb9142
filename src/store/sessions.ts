// Sessions of people, and the one-time links that start them.

import type { Kysely } from 'kysely'
import type { Database } from './schema.ts'

export type Session = {
  id: string
  prefix: string
  hash: Buffer
  currentTeamId: string | null
  expiresAt: Date
  revokedAt: Date | null
  userId: string
  email: string
  userName: string
}

/** Returns the session with this prefix, in any state. */
export async function findSession(db: Kysely<Database>, prefix: string): Promise<Session | null> {
  const row = await db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .select([
      'sessions.id',
      'sessions.prefix',
      'sessions.hash',
      'sessions.current_team_id as currentTeamId',
      'sessions.expires_at as expiresAt',
      'sessions.revoked_at as revokedAt',
      'users.id as userId',
      'users.email',
      'users.name as userName',
    ])
    .where('sessions.prefix', '=', prefix)
    .executeTakeFirst()
  return row ?? null
}

export type NewSession = {
  id: string
  userId: string
  prefix: string
  hash: Buffer
  createdAt: Date
  expiresAt: Date
}

export async function insertSession(db: Kysely<Database>, session: NewSession): Promise<void> {
  await db
    .insertInto('sessions')
    .values({
      id: session.id,
      user_id: session.userId,
      prefix: session.prefix,
      hash: session.hash,
      current_team_id: null,
      created_at: session.createdAt,
      expires_at: session.expiresAt,
      revoked_at: null,
    })
    .execute()
}

/** Stores the team used last, in which the next call without `x-berth-team` acts. */
export async function setSessionTeam(
  db: Kysely<Database>,
  { id, teamId }: { id: string; teamId: string },
): Promise<void> {
  await db.updateTable('sessions').set({ current_team_id: teamId }).where('id', '=', id).execute()
}

export async function revokeSession(
  db: Kysely<Database>,
  { id, at }: { id: string; at: Date },
): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ revoked_at: at })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .execute()
}

export type NewSignInLink = { prefix: string; hash: Buffer; email: string; createdAt: Date; expiresAt: Date }

export async function insertSignInLink(db: Kysely<Database>, link: NewSignInLink): Promise<void> {
  await db
    .insertInto('sign_in_links')
    .values({
      prefix: link.prefix,
      hash: link.hash,
      email: link.email,
      created_at: link.createdAt,
      expires_at: link.expiresAt,
      used_at: null,
    })
    .execute()
}

export type SignInLink = { hash: Buffer; email: string; expiresAt: Date; usedAt: Date | null }

export async function findSignInLink(db: Kysely<Database>, prefix: string): Promise<SignInLink | null> {
  const row = await db
    .selectFrom('sign_in_links')
    .select(['hash', 'email', 'expires_at as expiresAt', 'used_at as usedAt'])
    .where('prefix', '=', prefix)
    .executeTakeFirst()
  return row ?? null
}

/** Of concurrent calls one wins. Returns whether this call used the link up. */
export async function useSignInLink(db: Kysely<Database>, prefix: string, at: Date): Promise<boolean> {
  const result = await db
    .updateTable('sign_in_links')
    .set({ used_at: at })
    .where('prefix', '=', prefix)
    .where('used_at', 'is', null)
    .where('expires_at', '>', at)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

export async function deleteSignInLinks(
  db: Kysely<Database>,
  { expiredBefore }: { expiredBefore: Date },
): Promise<void> {
  await db.deleteFrom('sign_in_links').where('expires_at', '<', expiredBefore).execute()
}
