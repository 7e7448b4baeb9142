// Times that something is still reckoned from or waits for. When the wall clock jumps they move along, so that
// as much time is left or has passed as before. What is over stays as it was written down.

import { type Kysely, sql } from 'kysely'
import type { Database } from './db.ts'

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
      changed_at = changed_at + ${by}
    where state <> 'destroyed'
  `.execute(db)
  await splitOpenRuns(db, { from, to })
  await sql`update sessions set expires_at = expires_at + ${by} where expires_at > ${from}`.execute(db)
  await sql`update sign_in_links set expires_at = expires_at + ${by} where expires_at > ${from}`.execute(db)
  await sql`update rate_windows set spent_at = spent_at + ${by}, revision = revision + 1`.execute(db)
  await sql`update idempotency_keys set claimed_at = claimed_at + ${by}`.execute(db)
}

/** A run ends by the old time and another begins by the new one: what was billed is never written anew. */
async function splitOpenRuns(db: Kysely<Database>, { from, to }: { from: Date; to: Date }): Promise<void> {
  await sql`
    with ended as (
      update runs set ended_at = greatest(started_at, ${from}) where ended_at is null returning *
    )
    insert into runs
      (unit_id, generation, team_id, held_by, size, price_nano_cents_per_hour, started_at)
    select unit_id, generation, team_id, held_by, size, price_nano_cents_per_hour, ${to} from ended
  `.execute(db)
}
