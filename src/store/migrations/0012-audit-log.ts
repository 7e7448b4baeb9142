// The audit log by key and by agent, newest first: a page of either is a walk along an index, however many rows the
// team has.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create index audit_credential on audit (team_id, credential_id, id desc);
    create index audit_agent on audit (team_id, agent_name, id desc) where agent_name is not null;
  `.execute(db)
}
