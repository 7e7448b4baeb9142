// Idempotency keys with the stored data of their answers, encrypted by the caller. A key can be claimed again once it
// is free; data of an earlier claim is then no longer written.

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'
import type { IdempotencyKeysTable } from './tables/idempotency.ts'

/** Identifies a key: the same key of another team or route is another key. */
export type KeyName = { teamId: string; route: string; key: string }

export type KeyClaim = Pick<IdempotencyKeysTable, 'claim' | 'request' | 'kept' | 'answer'>

/**
 * Claims a key that is free, or was claimed at `freeBefore` or earlier. Waits for a transaction that is about to
 * claim it. Returns false if it is taken.
 */
export async function claimKey(
  db: Kysely<Database>,
  name: KeyName,
  { claim, request, now, freeBefore }: { claim: string; request: Buffer; now: Date; freeBefore: Date },
): Promise<boolean> {
  const begun = { claim, request, kept: null, answer: null, claimed_at: now }
  const result = await db
    .insertInto('idempotency_keys')
    .values({ ...rowOf(name), ...begun })
    .onConflict((conflict) =>
      conflict
        .columns(['team_id', 'route', 'key'])
        .doUpdateSet(begun)
        .where('idempotency_keys.claimed_at', '<=', freeBefore),
    )
    .executeTakeFirst()
  return result.numInsertedOrUpdatedRows === 1n
}

/** Call it in the transaction that claimed the key. */
export async function keepForKey(
  db: Kysely<Database>,
  name: KeyName,
  { claim, kept }: { claim: string; kept: Buffer },
): Promise<void> {
  await updateClaim(db, name, claim).set({ kept }).execute()
}

export async function findKey(
  db: Kysely<Database>,
  name: KeyName,
  { claimedAfter }: { claimedAfter: Date },
): Promise<KeyClaim | null> {
  const row = await db
    .selectFrom('idempotency_keys')
    .select(['claim', 'request', 'kept', 'answer'])
    .where((is) => is.and(rowOf(name)))
    .where('claimed_at', '>', claimedAfter)
    .executeTakeFirst()
  return row ?? null
}

/** Stores an answer unless there is one. Returns the stored answer; null if the claim is gone. */
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

/** A key that has an answer keeps it. */
export async function releaseKey(db: Kysely<Database>, name: KeyName, claim: string): Promise<void> {
  await db
    .deleteFrom('idempotency_keys')
    .where((is) => is.and(rowOf(name)))
    .where('claim', '=', claim)
    .where('answer', 'is', null)
    .execute()
}

/** Of any team. Skips keys that are being claimed again at this moment. */
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

function updateClaim(db: Kysely<Database>, name: KeyName, claim: string) {
  return db
    .updateTable('idempotency_keys')
    .where((is) => is.and(rowOf(name)))
    .where('claim', '=', claim)
}

function rowOf({ teamId, route, key }: KeyName) {
  return { team_id: teamId, route, key }
}
