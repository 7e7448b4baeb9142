// The audit log by action, by target, and what failed: each a walk along an index, as by key and by agent.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create index audit_action on audit (team_id, action, id desc);
    create index audit_target on audit (team_id, target, id desc) where target is not null;
    create index audit_failed on audit (team_id, id desc) where status >= 400;
  `.execute(db)
}
