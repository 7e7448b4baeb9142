// Invitations that are open: one that was accepted, revoked or replaced has no row. One that has expired keeps it, so
// that whoever opens the link learns why it does not work.

import { type Kysely, type Selectable, sql } from 'kysely'
import type { Database } from './db.ts'
import type { Role } from './teams.ts'

export type InvitesTable = {
  id: string
  team_id: string
  email: string
  role: Exclude<Role, 'owner'>
  prefix: string
  hash: Buffer
  invited_by: string | null
  created_at: Date
  expires_at: Date
}

export type InviteRecord = Selectable<InvitesTable>

/** A newer one takes the place of the one the address had, whose link is dead from then on. */
export async function putInvite(db: Kysely<Database>, invite: InviteRecord): Promise<void> {
  const { team_id: teamId, email } = invite
  await db.deleteFrom('invites').where('team_id', '=', teamId).where(isAddress(email)).execute()
  await db.insertInto('invites').values(invite).execute()
}

/** Newest first. */
export async function listInvites(db: Kysely<Database>, teamId: string): Promise<InviteRecord[]> {
  return await db
    .selectFrom('invites')
    .selectAll()
    .where('team_id', '=', teamId)
    .orderBy('id', 'desc')
    .execute()
}

export type InviteInTeam = InviteRecord & { team_name: string; inviter_name: string | null }

/** Of any team, by the prefix of its token, with what an invited person is to know. */
export async function findInvite(db: Kysely<Database>, prefix: string): Promise<InviteInTeam | null> {
  const row = await db
    .selectFrom('invites')
    .innerJoin('teams', 'teams.id', 'invites.team_id')
    .leftJoin('users', 'users.id', 'invites.invited_by')
    .selectAll('invites')
    .select(['teams.name as team_name', 'users.name as inviter_name'])
    .where('invites.prefix', '=', prefix)
    .executeTakeFirst()
  return row ?? null
}

/** How many others than this address are invited and may still accept. */
export async function countOtherInvites(
  db: Kysely<Database>,
  { teamId, email, now }: { teamId: string; email: string; now: Date },
): Promise<number> {
  const { count } = await db
    .selectFrom('invites')
    .select((select) => select.fn.countAll<bigint>().as('count'))
    .where('team_id', '=', teamId)
    .where('expires_at', '>', now)
    .where((where) => where.not(isAddress(email)))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Of several who try at once one succeeds. */
export async function deleteInvite(
  db: Kysely<Database>,
  { teamId, id }: { teamId: string; id: string },
): Promise<boolean> {
  const result = await db
    .deleteFrom('invites')
    .where('team_id', '=', teamId)
    .where('id', '=', id)
    .executeTakeFirst()
  return result.numDeletedRows === 1n
}

export async function deleteInvitesOf(
  db: Kysely<Database>,
  { teamId, invitedBy }: { teamId: string; invitedBy: string },
): Promise<void> {
  await db.deleteFrom('invites').where('team_id', '=', teamId).where('invited_by', '=', invitedBy).execute()
}

export async function deleteInvites(db: Kysely<Database>, teamId: string): Promise<void> {
  await db.deleteFrom('invites').where('team_id', '=', teamId).execute()
}

/** As the unique index compares. */
function isAddress(email: string) {
  return sql<boolean>`lower(invites.email collate "C") = lower(${email}::text collate "C")`
}
