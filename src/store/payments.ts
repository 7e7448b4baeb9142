// Payments. A process that takes one has it until `due_at`; if it is slower, or an event about the payment arrives,
// it finds that `revision` has changed, and changes nothing.

import { type Kysely, type Selectable, sql } from 'kysely'
import type { Database } from './schema.ts'
import type { PaymentsTable } from './tables/payments.ts'

export type PaymentRecord = Selectable<PaymentsTable>

export type NewPayment = Pick<PaymentRecord, 'id' | 'team_id' | 'created_by' | 'amount_cents'> & {
  createdAt: Date
  /** Until then it belongs to the process that inserts it. */
  dueAt: Date
}

/** Returns the row as another process would read it. */
export async function insertPayment(
  db: Kysely<Database>,
  { createdAt, dueAt, ...fields }: NewPayment,
): Promise<PaymentRecord> {
  const values = {
    ...fields,
    state: 'created' as const,
    checkout_id: null,
    checkout_url: null,
    intent_id: null,
    revision: 0,
    looks: 0,
    due_at: dueAt,
    created_at: createdAt,
    closed_at: null,
  }
  await db.insertInto('payments').values(values).execute()
  return values
}

export async function findPayment(db: Kysely<Database>, id: string): Promise<PaymentRecord | null> {
  const row = await db.selectFrom('payments').selectAll().where('id', '=', id).executeTakeFirst()
  return row ?? null
}

/** Newest first. */
export async function listPayments(
  db: Kysely<Database>,
  { teamId, limit }: { teamId: string; limit: number },
): Promise<PaymentRecord[]> {
  return await db
    .selectFrom('payments')
    .selectAll()
    .where('team_id', '=', teamId)
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/** Counts the payments that can still be paid. */
export async function countOpenPayments(db: Kysely<Database>, teamId: string): Promise<number> {
  const { count } = await db
    .selectFrom('payments')
    .select((select) => select.fn.countAll<bigint>().as('count'))
    .where('team_id', '=', teamId)
    .where('state', 'in', ['created', 'open'])
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Concurrent runs of the job take different payments. */
export async function takeDuePayments(
  db: Kysely<Database>,
  { now, until, limit }: { now: Date; until: Date; limit: number },
): Promise<PaymentRecord[]> {
  return await db
    .updateTable('payments')
    .set((set) => ({
      due_at: until,
      looks: set('looks', '+', 1),
      revision: set('revision', '+', 1),
    }))
    .where('id', 'in', (query) =>
      query
        .selectFrom('payments')
        .select('id')
        .where('due_at', '<=', now)
        .orderBy('due_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .execute()
}

type Taken = Pick<PaymentRecord, 'id' | 'revision'>
type Change = Partial<
  Pick<
    PaymentRecord,
    'state' | 'checkout_id' | 'checkout_url' | 'intent_id' | 'looks' | 'due_at' | 'closed_at'
  >
>

/** Returns null if another process was faster. */
export async function changePayment(
  db: Kysely<Database>,
  { id, revision }: Taken,
  change: Change,
): Promise<PaymentRecord | null> {
  const row = await db
    .updateTable('payments')
    .set({ ...change, revision: revision + 1 })
    .where('id', '=', id)
    .where('revision', '=', revision)
    .returningAll()
    .executeTakeFirst()
  return row ?? null
}

/** Makes the payments that an event names due at once, whatever their state, and even if a process has taken them. */
export async function wakePayments(
  db: Kysely<Database>,
  {
    checkoutId,
    orderId,
    intentId,
    now,
  }: { checkoutId: string | null; orderId: string | null; intentId: string | null; now: Date },
): Promise<void> {
  await sql`
    update payments set
      due_at = ${now}, looks = 0, revision = revision + 1,
      -- Made, and lost on the way to us.
      checkout_id = case when id = ${orderId} then coalesce(checkout_id, ${checkoutId}) else checkout_id end
    where id = ${orderId} or checkout_id = ${checkoutId} or intent_id = ${intentId}
  `.execute(db)
}
