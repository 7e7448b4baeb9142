// Stored times that still matter. When the wall clock jumps they are shifted, so that the same durations remain.
// Times of ended things stay as they are.

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'

/** Call it in a transaction. */
export async function moveOpenTimes(
  db: Kysely<Database>,
  { from, to }: { from: Date; to: Date },
): Promise<void> {
  const by = sql`(${to.getTime() - from.getTime()}::bigint * interval '1 millisecond')`
  await sql`
    update units set
      sleeps_at = sleeps_at + ${by},
      last_used_at = case when state = 'running' then last_used_at + ${by} else last_used_at end,
      destroys_at = destroys_at + ${by},
      ends_at = ends_at + ${by},
      changed_at = changed_at + ${by}
    where state <> 'destroyed'
  `.execute(db)
  // The counted and the charged time stay the same.
  await sql`
    update meters set started_at = started_at + ${by}, billed_to = billed_to + ${by} where ended_at is null
  `.execute(db)
  // The service's own is set by who calls this.
  await sql`update heartbeats set at = at + ${by} where id <> 'service'`.execute(db)
  await sql`update sessions set expires_at = expires_at + ${by} where expires_at > ${from}`.execute(db)
  await sql`update sign_in_links set expires_at = expires_at + ${by} where expires_at > ${from}`.execute(db)
  await sql`update invites set expires_at = expires_at + ${by} where expires_at > ${from}`.execute(db)
  await sql`update rate_windows set spent_at = spent_at + ${by}, revision = revision + 1`.execute(db)
  await sql`update idempotency_keys set claimed_at = claimed_at + ${by}`.execute(db)
  await sql`update mails set due_at = due_at + ${by}, created_at = created_at + ${by}`.execute(db)
  await sql`
    update payments set
      due_at = due_at + ${by},
      created_at = case when state in ('created', 'open') then created_at + ${by} else created_at end
    where due_at is not null
  `.execute(db)
  await sql`
    update allowances set
      spent = array(select at + ${by} from unnest(spent) at order by at),
      last_spent_at = last_spent_at + ${by}
  `.execute(db)
  await sql`update provider_sign_ins set expires_at = expires_at + ${by}`.execute(db)
  await sql`update oauth_requests set expires_at = expires_at + ${by}`.execute(db)
  await sql`update oauth_codes set expires_at = expires_at + ${by}`.execute(db)
  await sql`
    update oauth_clients set used_at = used_at + ${by}, fresh_until = fresh_until + ${by}
  `.execute(db)
  await sql`
    update oauth_families set
      used_at = used_at + ${by},
      refresh_until = refresh_until + ${by},
      revoked_at = revoked_at + ${by}
  `.execute(db)
  await sql`
    update oauth_tokens set expires_at = expires_at + ${by}, retired_at = retired_at + ${by}
  `.execute(db)
}
