// Hosts that are nodes of Kubernetes (decisions/joining.md).

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // Both null: not a node. `cordoned`: its node is, and the host was drained for that.
  await sql`
    alter table hosts add column node_name text, add column node_uid text,
      add column cordoned boolean not null default false
  `.execute(db)
}
