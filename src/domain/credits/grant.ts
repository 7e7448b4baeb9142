// Credits that nobody paid for: free ones, once for each address that proves itself, and an operator's.

import { createHash } from 'node:crypto'
import type { Kysely } from 'kysely'
import { newId } from '../../lib/ids.ts'
import { toNanoCents } from '../../lib/money.ts'
import { insertCredit } from '../../store/credits.ts'
import type { Database } from '../../store/db.ts'
import { repeatedly } from '../../store/outage.ts'

/** To the personal team of whoever has just proved the address. False: it was given them before. */
export async function grantFreeCredits(
  db: Kysely<Database>,
  { teamId, email, cents, at }: { teamId: string; email: string; cents: number; at: Date },
): Promise<boolean> {
  if (cents === 0) return false
  // Outlives the account, which must not come again for more; so the address itself is not in it.
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

/** By the operator; less than nothing takes back. Once, also over a connection that breaks. */
export async function grantCredits(
  db: Kysely<Database>,
  { teamId, cents, note, at }: { teamId: string; cents: number; note: string; at: Date },
): Promise<void> {
  const id = newId('credit')
  const nanoCents = toNanoCents(cents)
  const credit = { id, teamId, kind: 'granted' as const, nanoCents, source: id, note, createdAt: at }
  await repeatedly(() => insertCredit(db, credit))
}
