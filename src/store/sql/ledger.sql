/*
  The ledger's functions and triggers, as they are now. docs/money.md explains them with an example.

  The story
    1. A meter (table meters) is one run of something that costs: a unit's machine while it runs, or its volume while it
       exists. A meter has a price in whole nano-cents an hour, which stays as it is until the meter ends.
    2. billed_to is how far a meter has been charged. Moving it charges the difference: an update of meters runs
       charge_what_was_counted, which inserts rows into charges in the same transaction. Moving it nowhere charges nothing.
    3. An insert into charges runs add_up_charges, which adds to usage_days and takes from balances. An insert into
       credits runs add_up_credits, which adds to balances.
    4. Nothing changes or deletes a charge or a credit (refuse_change). A correction is a new row of credits.

  What is rounded, and where
    In `counted`, and nowhere else. The exact cost of a unit is a sum of price times milliseconds, in nano-cents times
    milliseconds of an hour; `counted` divides it by 3 600 000 and drops the fraction of a nano-cent. A charge is the
    difference of two such values, so the fraction that one charge drops is in the next one. However often a meter is
    charged, the charges of a unit's meters of one kind add up to their exact cost, rounded down once. counted_before carries
    the exact cost of the earlier meters of that unit and kind into the next meter, unrounded.

  How days are split
    charges_between cuts a stretch of time at each midnight of UTC, and makes one charge for each day.

  How sums are kept
    usage_days (by team, credential, day, kind and size) and balances (by team) are changed by the statement that inserts
    what they sum. Rows are changed in the order of their keys, so that two transactions that charge at once do not wait for
    each other in a circle. store/verify-ledger.ts adds everything up again once a day, without these functions.

  What is not here
    What costs, and from when: domain/billing/rates.ts and prices.ts. How far is proven: provenBy in store/meters.ts.

  This file is applied after the migrations, in their transaction, whenever its text has changed (store/repeatable.ts). Each
  statement is `create or replace`. Postgres replaces a function only if its arguments and its result stay the same: drop a
  function whose signature changes in a migration, before this file creates it anew.
*/

-- Milliseconds from one moment to another, to the nearest one. None if the second one is earlier.
create or replace function ms_between(began timestamptz, ended timestamptz) returns bigint
  language sql immutable parallel safe
  return greatest(0, round(extract(epoch from ended - began) * 1000))::bigint;

-- Whole nano-cents that a unit's meters of one kind have counted once the latest of them has run for `ms`.
-- The only place that rounds stored money: div drops the fraction.
create or replace function counted(counted_before numeric, price_per_hour bigint, ms bigint) returns bigint
  language sql immutable parallel safe
  return div(counted_before + price_per_hour::numeric * ms, 3600000)::bigint;

-- The charges of a meter between two moments of its time, in milliseconds since it began: one for each day of UTC.
create or replace function charges_between(
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

-- Charges each updated meter for what its billed_to has moved by. Both moments are measured from the meter's beginning, so a
-- jump of the clock, which moves the beginning and billed_to alike, charges nothing.
create or replace function charge_what_was_counted() returns trigger language plpgsql as $$
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

-- Adds new charges to the sums of their days, and takes them from the balances of their teams.
create or replace function add_up_charges() returns trigger language plpgsql as $$
  begin
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

-- Adds new credits to the balances of their teams. A refund is a credit below zero.
create or replace function add_up_credits() returns trigger language plpgsql as $$
  begin
    insert into balances as known
    select team_id, sum(nano_cents) from added group by team_id order by team_id
    on conflict (team_id) do update set nano_cents = known.nano_cents + excluded.nano_cents;
    return null;
  end
$$;

create or replace function refuse_change() returns trigger language plpgsql as $$
  begin
    raise exception '% are only ever added', tg_table_name;
  end
$$;

create or replace trigger meters_are_charged after update on meters
  referencing old table as before new table as now
  for each statement execute function charge_what_was_counted();
create or replace trigger charges_add_up after insert on charges
  referencing new table as added for each statement execute function add_up_charges();
create or replace trigger credits_add_up after insert on credits
  referencing new table as added for each statement execute function add_up_credits();
create or replace trigger charges_stay before update or delete on charges
  for each row execute function refuse_change();
create or replace trigger credits_stay before update or delete on credits
  for each row execute function refuse_change();
