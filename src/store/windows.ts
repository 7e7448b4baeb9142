// Idle windows and their ends. They are always computed in the statement that writes them, from the current row, so
// that a use and a change of the window at the same time leave the unit with the newer of both.

import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Database } from './schema.ts'

/** When a unit sleeps unless it is used after `since`; null for `never`. Also of its time to live, which may be null. */
export function windowEnd(
  since: RawBuilder<Date>,
  sleep: RawBuilder<string | null> = sql<string | null>`units.sleep`,
): RawBuilder<Date | null> {
  return sql<Date | null>`case when ${sleep} = 'never' then null
    else ${since} + left(${sleep}, -1)::int * case right(${sleep}, 1)
      when 's' then interval '1 second' when 'm' then interval '1 minute' when 'h' then interval '1 hour' else interval '24 hours' end
    end`
}

/** Sets the unit's own window, counted from its last use. */
export async function setWindow(
  db: Kysely<Database>,
  { teamId, id, sleep }: { teamId: string; id: string; sleep: string },
): Promise<void> {
  await db
    .updateTable('units')
    .set({ sleep, sleeps_together: false, sleeps_at: endIfRunning(sql`units.last_used_at`, sleep) })
    .where('id', '=', id)
    .where('team_id', '=', teamId)
    .execute()
}

/** Sets one window for every unit of the stack, counted from the last use of any. Call it with the team locked. */
export async function setStackWindow(
  db: Kysely<Database>,
  { teamId, stackId, sleep }: { teamId: string; stackId: string; sleep: string },
): Promise<void> {
  await db
    .updateTable('stacks')
    .set({ sleep })
    .where('id', '=', stackId)
    .where('team_id', '=', teamId)
    .execute()
  const lastUse = sql<Date>`(select max(other.last_used_at) from units as other
    where other.stack_id = ${stackId} and other.state = 'running')`
  await db
    .updateTable('units')
    .set({ sleep, sleeps_together: true, sleeps_at: endIfRunning(lastUse, sleep) })
    .where('stack_id', '=', stackId)
    .where('team_id', '=', teamId)
    .where('state', '<>', 'destroyed')
    .execute()
}

/**
 * Of any team, on one host: postpones the end of each window by `byMs`, to at least `graceMs` from now, and to at most a
 * whole window from now.
 */
export async function putOffSleep(
  db: Kysely<Database>,
  { hostId, now, byMs, graceMs }: { hostId: string; now: Date; byMs: number; graceMs: number },
): Promise<void> {
  const soonest = new Date(now.getTime() + graceMs)
  const later = sql<Date>`sleeps_at + ${Math.round(byMs)}::bigint * interval '1 millisecond'`
  await db
    .updateTable('units')
    .set({
      sleeps_at: sql`least(${windowEnd(sql`${now}::timestamptz`)}, greatest(${later}, ${soonest}))`,
    })
    .where('host_id', '=', hostId)
    .where('state', '=', 'running')
    .where('sleeps_at', 'is not', null)
    .execute()
}

/** Only a running unit has a time to sleep (spec 2.1). */
function endIfRunning(since: RawBuilder<Date>, sleep: string): RawBuilder<Date | null> {
  return sql<Date | null>`case when units.state = 'running'
    then ${windowEnd(since, sql<string>`${sleep}::text`)} end`
}
