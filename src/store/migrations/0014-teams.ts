// Teams that can be deleted, and invitations to join one. A deleted team keeps its row for what has to outlive it: the
// audit log, and what its units have cost.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // Addresses are compared by their ASCII letters alone (lib/email.ts), whatever the database's own rules are.
  await sql`
    alter table teams add column deleted_at timestamptz;

    create table invites (
      id text primary key,
      team_id text not null references teams on delete cascade,
      email text not null,
      role text not null check (role in ('admin', 'member')),
      prefix text not null unique,
      hash bytea not null check (length(hash) = 32),
      invited_by text references users on delete set null,
      created_at timestamptz not null,
      expires_at timestamptz not null
    );
    create unique index invites_address on invites (team_id, lower(email collate "C"));
  `.execute(db)
}
