// Open invitations: an accepted, revoked or replaced one has no row. An expired one keeps its row, so that a visitor
// of its link learns why it does not work.

import { type Kysely, type Selectable, sql } from 'kysely'
import type { Database } from './schema.ts'
import type { InvitesTable } from './tables/invites.ts'

export type InviteRecord = Selectable<InvitesTable>

/** Replaces an earlier invitation of the address, whose link stops working. */
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

/** Of any team: finds the invitation of a token's prefix, with what the invited person may know. */
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

/** Counts the invitations of other addresses that can still be accepted. */
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

/** Of concurrent calls one succeeds. */
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

/** Compares like the unique index. */
function isAddress(email: string) {
  return sql<boolean>`lower(invites.email collate "C") = lower(${email}::text collate "C")`
}
