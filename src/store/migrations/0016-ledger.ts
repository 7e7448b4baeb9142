// The ledger (design 8). What was a run becomes a meter: it counts while a running machine or a volume costs. The
// database itself charges what a meter has counted whenever the meter moves, so nothing can be charged twice or be
// forgotten, whichever process moves it and whenever it dies (decisions/money.md).

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table runs rename to meters;
    alter index runs_open rename to meters_open;
    alter index runs_unit rename to meters_unit;
    alter table meters
      add column kind text not null default 'compute' check (kind in ('compute', 'volume')),
      -- What the unit's meters of this kind before this one have counted, in nano-cents times milliseconds of an hour:
      -- nothing is rounded before it is charged.
      add column counted_before numeric not null default 0,
      add column billed_to timestamptz;
    alter table meters alter column kind drop default;
    drop index meters_open, meters_unit;
    -- Whatever else goes wrong, nothing is billed twice at once.
    create unique index meters_open on meters (unit_id, kind) where ended_at is null;
    create index meters_unit on meters (unit_id, kind, id desc);
    create index meters_open_of_team on meters (team_id) where ended_at is null;
    create index meters_open_of_credential on meters (held_by) where ended_at is null;

    create index units_limited on units (team_id) where stopped_reason in ('cap', 'credits');

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
      kind text not null check (kind in ('free', 'granted', 'topped-up')),
      nano_cents bigint not null,
      -- What it came of: the same comes once.
      source text not null unique,
      note text,
      created_at timestamptz not null
    );
    create index credits_team on credits (team_id);

    -- Sums of the two, kept by the triggers below and checked by the recount.
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

    create function ms_between(began timestamptz, ended timestamptz) returns bigint
      language sql immutable parallel safe
      return greatest(0, round(extract(epoch from ended - began) * 1000))::bigint;

    /* Whole nano-cents that the unit's meters of one kind have counted when this one has run so long. */
    create function counted(counted_before numeric, price_per_hour bigint, ms bigint) returns bigint
      language sql immutable parallel safe
      return div(counted_before + price_per_hour::numeric * ms, 3600000)::bigint;

    /* The charges of a meter between two moments of its time: one for each day. */
    create function charges_between(
      began timestamptz, counted_before numeric, price_per_hour bigint, first_ms bigint, last_ms bigint
    ) returns table (day date, from_ms bigint, to_ms bigint, nano_cents bigint)
      language sql stable parallel safe
      as $$
        select midnight::date, part.from_ms, part.to_ms,
          counted(counted_before, price_per_hour, part.to_ms) - counted(counted_before, price_per_hour, part.from_ms)
        from generate_series(
          date_trunc('day', (began + first_ms * interval '1 millisecond') at time zone 'UTC'),
          (began + last_ms * interval '1 millisecond') at time zone 'UTC',
          interval '1 day'
        ) as midnight
        cross join lateral (
          select
            greatest(first_ms, ms_between(began, midnight at time zone 'UTC')) as from_ms,
            least(last_ms, ms_between(began, (midnight + interval '1 day') at time zone 'UTC')) as to_ms
        ) as part
        where part.to_ms > part.from_ms
      $$;

    create function charge_what_was_counted() returns trigger language plpgsql as $$
      begin
        insert into charges
        select now.id, charge.from_ms, charge.to_ms, now.unit_id, now.team_id, now.held_by, now.kind, now.size,
          charge.day, charge.nano_cents
        from now join before on before.id = now.id
        cross join lateral charges_between(
          now.started_at, now.counted_before, now.price_nano_cents_per_hour,
          ms_between(before.started_at, before.billed_to), ms_between(now.started_at, now.billed_to)
        ) as charge;
        return null;
      end
    $$;

    create function add_up_charges() returns trigger language plpgsql as $$
      begin
        -- In one order, whoever charges: two who met would else wait for each other.
        insert into usage_days as known
        select team_id, credential_id, day, kind, size, sum(to_ms - from_ms), sum(nano_cents)
        from added group by team_id, day, credential_id, kind, size
        order by team_id, day, credential_id, kind, size
        on conflict (team_id, day, credential_id, kind, size) do update
        set ms = known.ms + excluded.ms, nano_cents = known.nano_cents + excluded.nano_cents;
        insert into balances as known
        select team_id, -sum(nano_cents) from added group by team_id order by team_id
        on conflict (team_id) do update set nano_cents = known.nano_cents + excluded.nano_cents;
        return null;
      end
    $$;

    create function add_up_credits() returns trigger language plpgsql as $$
      begin
        insert into balances as known
        select team_id, sum(nano_cents) from added group by team_id order by team_id
        on conflict (team_id) do update set nano_cents = known.nano_cents + excluded.nano_cents;
        return null;
      end
    $$;

    create function refuse_change() returns trigger language plpgsql as $$
      begin
        raise exception '% are only ever added', tg_table_name;
      end
    $$;

    create trigger meters_are_charged after update on meters
      referencing old table as before new table as now
      for each statement execute function charge_what_was_counted();
    create trigger charges_add_up after insert on charges
      referencing new table as added for each statement execute function add_up_charges();
    create trigger credits_add_up after insert on credits
      referencing new table as added for each statement execute function add_up_credits();
    create trigger charges_stay before update or delete on charges
      for each row execute function refuse_change();
    create trigger credits_stay before update or delete on credits
      for each row execute function refuse_change();

    -- What has run until now is charged as what will.
    update meters set
      billed_to = started_at,
      counted_before = (
        select coalesce(sum(price_nano_cents_per_hour::numeric * ms_between(started_at, ended_at)), 0)
        from meters as earlier where earlier.unit_id = meters.unit_id and earlier.id < meters.id
      );
    alter table meters alter column billed_to set not null;
    update meters set billed_to = ended_at where ended_at is not null;
    alter table meters
      add check (billed_to >= started_at),
      add check (ended_at is null or ended_at = billed_to);
  `.execute(db)
}
