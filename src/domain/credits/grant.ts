// Credits without a payment: free credits, once for each verified address, and grants of the operator.

import { createHash } from 'node:crypto'
import type { Kysely } from 'kysely'
import { newId } from '../../lib/ids.ts'
import { toNanoCents } from '../../lib/money.ts'
import { insertCredit } from '../../store/credits.ts'
import type { Database } from '../../store/db.ts'
import { repeatedly } from '../../store/outage.ts'

/**
 * Grants to the personal team of the person who verified the address. Returns false if the address had them before.
 */
export async function grantFreeCredits(
  db: Kysely<Database>,
  { teamId, email, cents, at }: { teamId: string; email: string; cents: number; at: Date },
): Promise<boolean> {
  if (cents === 0) return false
  // This outlives the account, so that a deleted and recreated one gets no more; hence it holds only a hash of the
  // address.
  const address = createHash('sha256').update(email.toLowerCase()).digest('hex')
  return await insertCredit(db, {
    id: newId('credit'),
    teamId,
    kind: 'free',
    nanoCents: toNanoCents(cents),
    source: `address ${address}`,
    note: null,
    createdAt: at,
  })
}

/**
 * A grant by the operator; a negative amount takes credits back. Takes effect once, even if the connection breaks and
 * it is repeated.
 */
export async function grantCredits(
  db: Kysely<Database>,
  { teamId, cents, note, at }: { teamId: string; cents: number; note: string; at: Date },
): Promise<void> {
  const id = newId('credit')
  const nanoCents = toNanoCents(cents)
  const credit = { id, teamId, kind: 'granted' as const, nanoCents, source: id, note, createdAt: at }
  await repeatedly(() => insertCredit(db, credit))
}
