// Keys of calls that can be repeated, with what is known of their answers; sealed before it gets here. A key
// can be claimed again once it is free: whatever belongs to an earlier claim is written nowhere.

import { type Kysely, sql } from 'kysely'
import type { Database } from './db.ts'

export type IdempotencyKeysTable = {
  team_id: string
  /** Method and path as the route is defined. */
  route: string
  key: string
  /** Another one each time the key is claimed. */
  claim: string
  /** Tells whether another call asks for the same. */
  request: Buffer
  /** What a later answer needs; null only until the transaction that claims the key ends. */
  kept: Buffer | null
  answer: Buffer | null
  claimed_at: Date
}

/** Whose key it is, and for what. The same key of another team or route is another key. */
export type KeyName = { teamId: string; route: string; key: string }

export type KeyClaim = Pick<IdempotencyKeysTable, 'claim' | 'request' | 'kept' | 'answer'>

/**
 * Takes a key that is free, or that was claimed at `freeBefore` at the latest. Waits for a transaction that
 * is about to take it. False: somebody has it.
 */
export async function claimKey(
  db: Kysely<Database>,
  name: KeyName,
  { claim, request, now, freeBefore }: { claim: string; request: Buffer; now: Date; freeBefore: Date },
): Promise<boolean> {
  const begun = { claim, request, kept: null, answer: null, claimed_at: now }
  const result = await db
    .insertInto('idempotency_keys')
    .values({ team_id: name.teamId, route: name.route, key: name.key, ...begun })
    .onConflict((conflict) =>
      conflict
        .columns(['team_id', 'route', 'key'])
        .doUpdateSet(begun)
        .where('idempotency_keys.claimed_at', '<=', freeBefore),
    )
    .executeTakeFirst()
  return result.numInsertedOrUpdatedRows === 1n
}

/** For the transaction that claimed the key. */
export async function keepForKey(
  db: Kysely<Database>,
  name: KeyName,
  { claim, kept }: { claim: string; kept: Buffer },
): Promise<void> {
  await updateClaim(db, name, claim).set({ kept }).execute()
}

export async function findKey(
  db: Kysely<Database>,
  { teamId, route, key }: KeyName,
  { claimedAfter }: { claimedAfter: Date },
): Promise<KeyClaim | null> {
  const row = await db
    .selectFrom('idempotency_keys')
    .select(['claim', 'request', 'kept', 'answer'])
    .where('team_id', '=', teamId)
    .where('route', '=', route)
    .where('key', '=', key)
    .where('claimed_at', '>', claimedAfter)
    .executeTakeFirst()
  return row ?? null
}

/** Of several who know an answer the first one's stays. Answers that one; null: the claim is gone. */
export async function keepAnswer(
  db: Kysely<Database>,
  name: KeyName,
  { claim, answer }: { claim: string; answer: Buffer },
): Promise<Buffer | null> {
  const row = await updateClaim(db, name, claim)
    .set({ answer: sql<Buffer>`coalesce(answer, ${answer})` })
    .returning('answer')
    .executeTakeFirst()
  return row?.answer ?? null
}

/** Of any team. What is being claimed anew this very moment is left alone. */
export async function deleteKeys(
  db: Kysely<Database>,
  { claimedBefore, limit }: { claimedBefore: Date; limit: number },
): Promise<void> {
  await sql`
    delete from idempotency_keys where (team_id, route, key) in (
      select team_id, route, key from idempotency_keys where claimed_at <= ${claimedBefore}
      order by claimed_at limit ${limit} for update skip locked
    )
  `.execute(db)
}

function updateClaim(db: Kysely<Database>, { teamId, route, key }: KeyName, claim: string) {
  return db
    .updateTable('idempotency_keys')
    .where('team_id', '=', teamId)
    .where('route', '=', route)
    .where('key', '=', key)
    .where('claim', '=', claim)
}
