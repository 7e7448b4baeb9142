// Which text of each repeatable SQL file this database has (store/repeatable.ts, decisions/money.md).

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table repeatable_sql (
      name text primary key,
      sha256 text not null
    );
  `.execute(db)
}
