// Payments by which a team tops up its credits, and what is taken back of them.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table payments (
      id text primary key,
      team_id text not null references teams (id),
      created_by text not null,
      amount_cents integer not null check (amount_cents > 0),
      state text not null check (state in ('created', 'open', 'paid', 'expired', 'failed')),
      -- At the provider. A checkout is one payment's.
      checkout_id text unique,
      checkout_url text,
      intent_id text unique,
      -- Counted up by whatever changes the row or wants it looked at, so that a look that is overtaken writes nothing.
      revision integer not null default 0,
      looks integer not null default 0,
      -- When the provider is asked next; null: not any more, unless it says something of its own accord.
      due_at timestamptz,
      created_at timestamptz not null,
      closed_at timestamptz,
      check (state not in ('open', 'paid') or checkout_id is not null)
    );
    create index payments_due on payments (due_at) where due_at is not null;
    create index payments_team on payments (team_id, id);

    alter table credits drop constraint credits_kind_check;
    alter table credits add constraint credits_kind_check
      check (kind in ('free', 'granted', 'topped-up', 'refunded', 'disputed'));
  `.execute(db)
}
