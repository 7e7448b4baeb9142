// What units may reach (decisions/egress.md). Null: no rules.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table teams add column egress jsonb`.execute(db)
  // Whether a unit of the stack has ever been kept to its stack: the engine is then told the stack of each unit in it.
  await sql`alter table stacks add column is_scope boolean not null default false`.execute(db)
  await sql`
    alter table units
      add column egress jsonb,
      add column egress_version integer not null default 0,
      add column egress_applied_version integer not null default 0,
      add column egress_applied_at timestamptz
  `.execute(db)
  await sql`create index units_egress_not_applied on units (id) where egress_version > egress_applied_version`.execute(
    db,
  )
}
