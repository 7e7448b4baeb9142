// The labels and the time to live of units. The end is computed in the statement that writes it, from the current row.

import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Metadata } from '../contract/metadata.ts'
import type { UnitEnd } from '../contract/time-to-live.ts'
import type { PortRules } from '../contract/port-host.ts'
import type { Database } from './schema.ts'
import { selectUnits, toRecord, type UnitRecord } from './unit-record.ts'
import { windowEnd } from './windows.ts'

/** When a unit ends whose time to live begins at `since`; null without one. */
export function lifeEnd(
  since: Date,
  timeToLive: RawBuilder<string | null> = sql<string | null>`units.time_to_live`,
): RawBuilder<Date | null> {
  return windowEnd(sql<Date>`${since}::timestamptz`, timeToLive)
}

export type UnitLabels = { metadata?: Metadata; timeToLive?: string | null; atEnd?: UnitEnd }

/**
 * Sets those that are given; a time to live counts from `at`, or from when the unit is ready. Returns false for a unit
 * that is destroyed or failed.
 */
export async function setUnitLabels(
  db: Kysely<Database>,
  { teamId, id, at }: { teamId: string; id: string; at: Date },
  { metadata, timeToLive, atEnd }: UnitLabels,
): Promise<boolean> {
  const ends = timeToLive === undefined ? undefined : endIfMade(at, timeToLive)
  const result = await db
    .updateTable('units')
    .set({
      at_end: atEnd ?? sql`units.at_end`,
      ...(metadata && { metadata: JSON.stringify(metadata) }),
      ...(ends && { time_to_live: timeToLive ?? null, ends_at: ends }),
    })
    .where('id', '=', id)
    .where('team_id', '=', teamId)
    .where('state', 'not in', ['error', 'destroying', 'destroyed'])
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** How its ports are visited by their own names; null: as those of every unit. */
export async function setPortRules(
  db: Kysely<Database>,
  { teamId, id }: { teamId: string; id: string },
  rules: PortRules | null,
): Promise<void> {
  await db
    .updateTable('units')
    .set({ port_rules: rules === null ? null : JSON.stringify(rules) })
    .where('id', '=', id)
    .where('team_id', '=', teamId)
    .execute()
}

/** Of any team: units whose time to live has passed, longest overdue first. */
export async function listUnitsDueToEnd(
  db: Kysely<Database>,
  { now, limit }: { now: Date; limit: number },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.ends_at', '<=', now)
    .where('units.state', 'in', ['running', 'sleeping', 'stopped'])
    .orderBy('units.ends_at')
    .limit(limit)
    .execute()
  return rows.map(toRecord)
}

/** Takes away the time to live that has passed, of a unit that has not changed since it was read. */
export async function clearEnd(
  db: Kysely<Database>,
  { id, revision }: Pick<UnitRecord, 'id' | 'revision'>,
  at: Date,
): Promise<boolean> {
  const result = await db
    .updateTable('units')
    .set({ ends_at: null, time_to_live: null })
    .where('id', '=', id)
    .where('revision', '=', revision)
    .where('ends_at', '<=', at)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

function endIfMade(at: Date, timeToLive: string | null): RawBuilder<Date | null> {
  const end = lifeEnd(at, sql<string | null>`${timeToLive}::text`)
  return sql<Date | null>`case when units.state <> 'creating' then ${end} end`
}
