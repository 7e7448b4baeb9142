// What units used, by minute and by hour (decisions/observability.md). Each row has the counters of its last sample, so that
// the next one adds only what is new, whatever ended in between.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table unit_metrics (
      unit_id text not null references units on delete cascade,
      step text not null check (step in ('minute', 'hour')),
      at timestamptz not null,
      generation integer not null,
      cpu_total_ms bigint not null,
      received_total bigint not null,
      sent_total bigint not null,
      cpu_ms bigint not null,
      memory_bytes bigint not null,
      received_bytes bigint not null,
      sent_bytes bigint not null,
      primary key (unit_id, step, at)
    );
    create index on unit_metrics (step, at);
  `.execute(db)
}
