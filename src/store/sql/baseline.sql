/*
  The schema as release cd6887e had it. A new database starts from here; the migrations of today's releases follow, and then
  ledger.sql, which has the functions and triggers of the ledger. A database of that release has all of this already
  (store/migrate.ts). Tokens are never stored: a prefix to find them by, and a SHA-256 to compare with.
*/

-- People, teams and credentials

create table users (
  id text primary key,
  email text not null,
  name text not null,
  email_verified boolean not null default false,
  admin boolean not null default false,
  created_at timestamptz not null
);
create unique index users_email on users (lower(email));

-- A deleted team keeps its row for what has to outlive it: the audit log, and what its units have cost.
create table teams (
  id text primary key,
  slug text not null unique,
  name text not null,
  personal boolean not null,
  plan text not null check (plan in ('hobby', 'pro', 'team')),
  region text not null check (region in ('paris', 'virginia', 'singapore')),
  currency text not null check (currency in ('eur', 'usd')),
  pays_as_it_goes boolean not null,
  network_group integer not null unique generated always as identity,
  created_at timestamptz not null,
  deleted_at timestamptz
);

create table memberships (
  team_id text not null references teams on delete cascade,
  user_id text not null references users on delete cascade,
  role text not null check (role in ('owner', 'admin', 'member')),
  joined_at timestamptz not null,
  primary key (team_id, user_id)
);
create index memberships_user on memberships (user_id);

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
-- Addresses are compared by their ASCII letters alone (lib/email.ts), whatever the database's own rules are.
create unique index invites_address on invites (team_id, lower(email collate "C"));

create table credentials (
  id text primary key,
  team_id text not null references teams on delete cascade,
  kind text not null check (kind in ('key', 'oauth')),
  name text not null,
  prefix text not null unique,
  hash bytea not null check (length(hash) = 32),
  policy jsonb not null,
  created_by text references users on delete set null,
  created_at timestamptz not null,
  last_used_at timestamptz,
  revoked_at timestamptz,
  -- What the client that used it last said of itself.
  user_agent text
);
create index credentials_team on credentials (team_id);

create table sessions (
  id text primary key,
  user_id text not null references users on delete cascade,
  prefix text not null unique,
  hash bytea not null check (length(hash) = 32),
  current_team_id text references teams on delete set null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  revoked_at timestamptz
);
create index sessions_user on sessions (user_id);

create table sign_in_links (
  prefix text primary key,
  hash bytea not null check (length(hash) = 32),
  email text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz
);
create index sign_in_links_expires on sign_in_links (expires_at);

-- Whom a provider vouches for, and sign-ins with a provider that are under way.
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

-- What is to be mailed, until it is delivered.
create table mails (
  id text primary key,
  sealed bytea not null,
  attempts integer not null default 0,
  due_at timestamptz not null,
  created_at timestamptz not null
);
create index mails_due on mails (due_at);

-- Calls: the audit log, calls that can be repeated, and rates

create table audit (
  id text primary key,
  team_id text not null references teams on delete cascade,
  credential_kind text not null check (credential_kind in ('key', 'oauth', 'session')),
  credential_id text not null,
  credential_name text not null,
  user_id text,
  action text not null,
  target text,
  input jsonb,
  request_id text not null,
  via text not null,
  agent_name text,
  agent_version text,
  user_agent text,
  started_at timestamptz not null,
  duration_ms double precision,
  status integer,
  error_code text,
  cost_delta_nanocents bigint not null default 0
);
-- A page of the team, a key or an agent is a walk along an index, however many rows the team has.
create index audit_team on audit (team_id, id desc);
create index audit_credential on audit (team_id, credential_id, id desc);
create index audit_agent on audit (team_id, agent_name, id desc) where agent_name is not null;

-- A row is written by the transaction that makes what the call makes, and lives for a day.
create table idempotency_keys (
  team_id text not null references teams on delete cascade,
  route text not null,
  key text not null,
  claim text not null,
  request bytea not null,
  kept bytea,
  answer bytea,
  claimed_at timestamptz not null,
  primary key (team_id, route, key)
);
create index idempotency_keys_claimed on idempotency_keys (claimed_at);

-- Rates are not worth a log of their own: a crash of Postgres forgets them.
create unlogged table rate_windows (
  credential_id text primary key,
  spent_at timestamptz not null,
  spent jsonb not null,
  revision bigint not null
) with (fillfactor = 50);

-- Counts of limited actions. The actor of a row is a hash.
create table allowances (
  name text not null,
  of bytea not null,
  spent timestamptz[] not null,
  last_spent_at timestamptz not null,
  primary key (name, of)
);
create index allowances_last_spent on allowances (last_spent_at);

-- Stacks, units, forks and endpoints

-- The row of a deleted stack stays, since units that are gone can still be read, but its name is free again. A stack that was
-- made for a unit that named none goes with its last unit.
create table stacks (
  id text primary key,
  team_id text not null references teams on delete cascade,
  name text not null,
  created_at timestamptz not null,
  sleep text,
  unnamed boolean not null default false,
  deleted_at timestamptz,
  made_by text
);
create unique index stacks_name on stacks (team_id, name) where deleted_at is null;
create index stacks_team on stacks (team_id, id desc) where deleted_at is null;

-- Units copied together, all or none. The row says how far they have come; the copies are the units that name it.
create table forks (
  id text primary key,
  team_id text not null references teams on delete cascade,
  source_id text not null,
  stack_id text not null references stacks,
  made_by text not null,
  skipped jsonb not null,
  progress jsonb,
  created_at timestamptz not null,
  ended_at timestamptz,
  error jsonb
);
create index forks_under_way on forks (id) where ended_at is null;

create table units (
  id text primary key,
  team_id text not null references teams on delete cascade,
  stack_id text not null references stacks,
  name text not null,
  image text not null,
  size text not null check (size in ('nano', 'small', 'medium', 'large')),
  -- json and not jsonb: the environment is shown in the order in which it was declared.
  spec json not null,
  isolation text not null,
  network_group integer not null,
  address text,
  held_by text not null,
  state text not null check (state in ('creating', 'running', 'stopping', 'stopped', 'sleeping',
    'starting', 'destroying', 'destroyed', 'error')),
  generation integer not null,
  -- Incremented by every change of state. State and generation alone can repeat, and a change based on an earlier read must fail.
  revision bigint not null default 1,
  stopped_reason text check (stopped_reason in ('idle', 'cap', 'credits', 'user', 'provider', 'exited')),
  sleep text not null,
  sleeps_at timestamptz,
  sleeps_together boolean not null default false,
  frozen boolean not null default false,
  progress jsonb,
  last_used_at timestamptz,
  created_at timestamptz not null,
  changed_at timestamptz not null,
  started_at timestamptz,
  last_exit jsonb,
  error text,
  destroys_at timestamptz,
  forked_from text,
  fork_id text references forks,
  copied text check (copied in ('memory', 'disk', 'config')),
  -- Of units that one create made together, from a recipe: what becomes of one that cannot be made becomes of all.
  made_with text
);
create unique index units_name on units (stack_id, name) where state not in ('error', 'destroying', 'destroyed');
create unique index units_address on units (address) where address is not null;
create index units_team on units (team_id, id desc);
create index units_stack on units (stack_id);
create index units_live on units (held_by) where state in ('creating', 'starting', 'running', 'stopping');
create index units_passing on units (changed_at)
  where state in ('creating', 'starting', 'stopping', 'destroying');
create index units_sleeps_at on units (sleeps_at) where state = 'running';
create index units_frozen on units (changed_at) where state = 'sleeping' and frozen;
create index units_destroys_at on units (destroys_at) where state = 'error';
create index units_fork on units (fork_id) where fork_id is not null;
create index units_made_with on units (made_with) where made_with is not null;
create index units_limited on units (team_id) where stopped_reason in ('cap', 'credits');
-- What a team's units are promised of the disks is added up with each create (store/active-units.ts).
create index units_there on units (team_id) where state not in ('error', 'destroyed');

create table secrets (
  owner_id text not null,
  name text not null,
  sealed bytea not null,
  primary key (owner_id, name)
);

create table boot_files (
  unit_id text not null references units on delete cascade,
  path text not null,
  sealed bytea not null,
  primary key (unit_id, path)
);

-- A row is one name of one endpoint; a name is never given again, so rows outlive their units and teams.
create table endpoints (
  id text primary key,
  unit_id text not null,
  team_id text not null,
  port integer not null check (port between 1 and 65535),
  protocol text not null check (protocol in ('http', 'postgres', 'mysql', 'redis', 'mongodb', 'amqp',
    'bolt', 'grpc')),
  mode text not null check (mode in ('public', 'private')),
  name text not null unique,
  secret_hash bytea,
  sealed_secret bytea,
  created_at timestamptz not null,
  retired_at timestamptz,
  -- Of a public TCP endpoint, for clients that send no server name. The name of a private one contains a secret, and a port
  -- is known to everyone.
  gateway_port integer check (gateway_port between 1024 and 65535),
  check ((mode = 'private') = (secret_hash is not null)),
  check ((secret_hash is null) = (sealed_secret is null)),
  check (gateway_port is null or (mode = 'public' and protocol <> 'http'))
);
-- One URL and one TCP endpoint a unit (spec 2.1).
create unique index endpoints_url on endpoints (unit_id) where retired_at is null and protocol = 'http';
create unique index endpoints_tcp on endpoints (unit_id) where retired_at is null and protocol <> 'http';
create unique index endpoints_gateway_port on endpoints (gateway_port) where retired_at is null;
-- Which port was unused the longest.
create index endpoints_gateway_port_before on endpoints (gateway_port) where gateway_port is not null;

-- Money (docs/money.md)

-- Counts while a running machine or a volume costs.
create table meters (
  id bigint generated always as identity primary key,
  unit_id text not null references units on delete cascade,
  generation integer not null,
  team_id text not null,
  held_by text not null,
  size text not null,
  kind text not null check (kind in ('compute', 'volume')),
  price_nano_cents_per_hour bigint not null,
  started_at timestamptz not null,
  ended_at timestamptz,
  -- What the unit's meters of this kind before this one have counted, in nano-cents times milliseconds of an hour: nothing is
  -- rounded before it is charged.
  counted_before numeric not null default 0,
  billed_to timestamptz not null,
  check (billed_to >= started_at),
  check (ended_at is null or ended_at = billed_to)
);
-- Whatever else goes wrong, nothing is billed twice at once.
create unique index meters_open on meters (unit_id, kind) where ended_at is null;
create index meters_unit on meters (unit_id, kind, id desc);
create index meters_open_of_team on meters (team_id) where ended_at is null;
create index meters_open_of_credential on meters (held_by) where ended_at is null;

create table charges (
  meter_id bigint not null,
  -- Where in the meter's time it begins and ends.
  from_ms bigint not null,
  to_ms bigint not null,
  unit_id text not null,
  team_id text not null,
  credential_id text not null,
  kind text not null,
  size text not null,
  -- Of UTC.
  day date not null,
  nano_cents bigint not null,
  primary key (unit_id, meter_id, from_ms),
  check (from_ms >= 0 and to_ms > from_ms and nano_cents >= 0)
);
create index charges_team on charges (team_id);

create table credits (
  id text primary key,
  team_id text not null,
  kind text not null check (kind in ('free', 'granted', 'topped-up', 'refunded', 'disputed')),
  nano_cents bigint not null,
  -- What it came of: the same comes once.
  source text not null unique,
  note text,
  created_at timestamptz not null
);
create index credits_team on credits (team_id);

-- Sums of the two, kept by the triggers of ledger.sql and checked by the recount.
create table usage_days (
  team_id text not null,
  credential_id text not null,
  day date not null,
  kind text not null,
  size text not null,
  ms bigint not null,
  nano_cents bigint not null,
  primary key (team_id, day, credential_id, kind, size)
);
create index usage_days_credential on usage_days (credential_id, day);
create table balances (team_id text primary key, nano_cents bigint not null, recounted_at timestamptz);

-- Payments by which a team tops up its credits, and what is taken back of them.
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

-- The installation

-- When the service last knew its machines to be alive: what is found dead after an outage is billed up to here, and idle time is
-- counted from here on. `offset_ms`: wall time less monotonic time, which is counted in this boot of the host.
create table heartbeats (
  id text primary key,
  at timestamptz not null,
  boot text not null,
  offset_ms double precision not null
);

-- Of all servers that were ever started on this database, the one with the highest epoch leads (decisions/leadership.md).
create table leaders (
  id text primary key,
  epoch integer not null,
  -- Null once it has ended of its own accord.
  holder text,
  renewed_at timestamptz not null
);

-- Which instances have begun on this database: one that has machines begins on no other (decisions/backup.md).
create table instances (
  id text primary key,
  met_at timestamptz not null default now()
);

-- The key that secrets are sealed with.
create table data_keys (
  id text primary key,
  sealed bytea not null,
  sealed_by text not null
);

-- The gateway finds where a visit goes, whether it may, and who asks. Secrets it sees as hashes alone.
do $$ begin
  if exists (select from pg_roles where rolname = 'berth_gateway') then
    grant select (id, team_id, name) on stacks to berth_gateway;
    grant select (id, team_id, stack_id, name, address, state, generation, stopped_reason, frozen)
      on units to berth_gateway;
    grant select (id, unit_id, port, protocol, name, secret_hash, retired_at, gateway_port)
      on endpoints to berth_gateway;
  end if;
end $$;
