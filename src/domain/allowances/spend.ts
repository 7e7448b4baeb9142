// Limits actions that burden other people or services, such as mails. They are counted in the database, so the limits
// hold over all processes and restarts. API calls have other limits (credentials/rate-limit.ts).

import { createHash } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { limitReached } from '../../contract/errors.ts'
import { HOUR, MINUTE, SECOND } from '../../lib/clock.ts'
import { deleteAllowances, findFirstSpent, spendOnce } from '../../store/allowances.ts'
import type { Database } from '../../store/db.ts'

type Allowance = { times: number; withinMs: number; what: string }

export const allowances = {
  support: { times: 5, withinMs: 10 * MINUTE, what: 'messages to support in ten minutes' },
  'invite-by-team': { times: 30, withinMs: 10 * MINUTE, what: 'invitations of a team in ten minutes' },
  'invite-by-address': {
    times: 10,
    withinMs: 10 * MINUTE,
    what: 'invitations of a team to one address in ten minutes',
  },
  'link-by-address': { times: 5, withinMs: 15 * MINUTE, what: 'sign-in links to an address in 15 minutes' },
  'link-by-peer': { times: 60, withinMs: 15 * MINUTE, what: 'sign-in links from one place in 15 minutes' },
  'provider-by-peer': { times: 300, withinMs: 15 * MINUTE, what: 'sign-ins from one place in 15 minutes' },
  'client-by-peer': {
    times: 100,
    withinMs: HOUR,
    what: 'registrations of a client from one place in an hour',
  },
  'document-by-peer': { times: 30, withinMs: 15 * MINUTE, what: 'new clients from one place in 15 minutes' },
  'request-by-peer': {
    times: 300,
    withinMs: 15 * MINUTE,
    what: 'requests to connect from one place in 15 minutes',
  },
} as const satisfies Record<string, Allowance>

/** Longer than any of the windows. */
const FORGOTTEN_AFTER_MS = HOUR

/** Counts one action; call it in the action's transaction. Throws `rateLimited`. A rollback also undoes the count. */
export async function spendAllowance(
  { clock }: { clock: Pick<App['clock'], 'now'> },
  db: Kysely<Database>,
  name: keyof typeof allowances,
  whose: string,
): Promise<void> {
  const { times, withinMs, what } = allowances[name]
  const now = clock.now()
  const since = new Date(now.getTime() - withinMs)
  const of = createHash('sha256').update(whose).digest()
  if (await spendOnce(db, { name, of, since, now, times })) return
  const first = (await findFirstSpent(db, { name, of, since })) ?? now
  // Read again, because this transaction may have waited for others.
  const waitMs = first.getTime() + withinMs - clock.now().getTime()
  const retryAfterS = Math.max(1, Math.ceil(waitMs / SECOND))
  throw limitReached(`${times} ${what}`, retryAfterS)
}

/** One run of the background job that deletes old counts. */
export async function forgetAllowances({ db, clock }: App): Promise<void> {
  await deleteAllowances(db, { spentBefore: new Date(clock.now().getTime() - FORGOTTEN_AFTER_MS) })
}
