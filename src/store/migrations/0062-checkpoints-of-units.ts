// What became of the memory of units whose sleep grew long: kept in a checkpoint, or not. A run ends in one at most.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table unit_checkpoints (
      unit_id text not null references units on delete cascade,
      generation integer not null,
      at timestamptz not null,
      kept boolean not null,
      primary key (unit_id, generation)
    );
    create index on unit_checkpoints (at);
  `.execute(db)
}
