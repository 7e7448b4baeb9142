// When the certificates of hosts end, and what came of their renewal (decisions/joining.md).

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'

/** `renewedAt`: they were renewed just now, which the host's log keeps. */
export async function saveCertificatesEnd(
  db: Kysely<Database>,
  { id, endsAt, renewedAt }: { id: string; endsAt: Date | null; renewedAt: Date | null },
): Promise<void> {
  await sql`
    with changed as (
      update hosts set certificates_end = ${endsAt}::timestamptz
      where id = ${id} and certificates_end is distinct from ${endsAt}::timestamptz returning id
    )
    insert into host_events (host_id, at, event)
      select id, ${renewedAt}::timestamptz, 'renewed' from changed where ${renewedAt}::timestamptz is not null
  `.execute(db)
}

/** A host asks again and again: the same reason is kept once. */
export async function noteRefusedRenewal(
  db: Kysely<Database>,
  { id, at, reason }: { id: string; at: Date; reason: string },
): Promise<void> {
  await sql`
    insert into host_events (host_id, at, event, reason)
      select ${id}, ${at}::timestamptz, 'not renewed', ${reason}
      where not exists (
        select from (select event, reason from host_events where host_id = ${id} order by id desc limit 1) as newest
        where newest.event = 'not renewed' and newest.reason = ${reason}
      )
  `.execute(db)
}
