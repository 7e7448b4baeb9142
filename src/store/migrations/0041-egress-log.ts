// What units reached and were refused, summed up by minute (decisions/egress.md). What a line does not have is '' or 0, so
// that lines of the same kind meet in one index. `changed` counts all changes of lines: readers go on after the last that
// they have seen.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create sequence egress_log_changes;
    create table egress_log (
      unit_id text not null references units on delete cascade,
      minute timestamptz not null,
      host text not null,
      port integer not null,
      protocol text not null,
      decision text not null,
      reason text not null,
      rule text not null,
      secret text not null,
      address text not null,
      bytes_in bigint not null,
      bytes_out bigint not null,
      count bigint not null,
      changed bigint not null,
      primary key (unit_id, minute, host, port, protocol, decision, reason, rule, secret)
    );
    create index on egress_log (unit_id, changed);
    create index on egress_log (minute);
  `.execute(db)
}
