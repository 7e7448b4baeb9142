// What is to be mailed, sealed, until it is delivered; whom a provider vouches for; and sign-ins with a provider
// that are under way.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table mails (
      id text primary key,
      sealed bytea not null,
      attempts integer not null default 0,
      due_at timestamptz not null,
      created_at timestamptz not null
    );
    create index mails_due on mails (due_at);

    create table identities (
      provider text not null,
      subject text not null,
      user_id text not null references users on delete cascade,
      created_at timestamptz not null,
      primary key (provider, subject)
    );
    create index identities_user on identities (user_id);

    create table provider_sign_ins (
      prefix text primary key,
      hash bytea not null check (length(hash) = 32),
      provider text not null,
      sealed bytea not null,
      expires_at timestamptz not null
    );
    create index provider_sign_ins_expired on provider_sign_ins (expires_at);
  `.execute(db)
}
