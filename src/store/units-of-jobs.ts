// Queries of background jobs and reconcilers over the units of all teams.

import { type Kysely, sql } from 'kysely'
import { transitionalStates } from '../contract/states.ts'
import type { Database } from './schema.ts'
import { selectUnits, toRecord, type UnitRecord } from './unit-record.ts'

/**
 * Of any team: units whose operation a crash, or an engine that was unavailable, may have interrupted. Copies are
 * resumed with their fork (forks.ts).
 */
export async function listTransitionalUnits(db: Kysely<Database>, now: Date): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.state', 'in', transitionalStates)
    .where((where) => where.or([where('units.state', '<>', 'creating'), where('units.fork_id', 'is', null)]))
    .execute()
  return rows.map(toRecord)
}

/** Of any team: running units whose idle window has passed, longest overdue first. */
export async function listUnitsDueToSleep(
  db: Kysely<Database>,
  { now, limit }: { now: Date; limit: number },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.state', '=', 'running')
    .where('units.sleeps_at', '<=', now)
    // Units that sleep together wait for the last of them.
    .where((where) =>
      where.or([
        where('units.sleeps_together', '=', false),
        where.not(
          where.exists(
            where
              .selectFrom('units as other')
              .select('other.id')
              .whereRef('other.stack_id', '=', 'units.stack_id')
              .where('other.sleeps_together', '=', true)
              .where((awake) =>
                awake.or([
                  awake('other.state', 'in', ['creating', 'starting']),
                  awake.and([
                    awake('other.state', '=', 'running'),
                    awake.or([awake('other.sleeps_at', 'is', null), awake('other.sleeps_at', '>', now)]),
                  ]),
                ]),
              ),
          ),
        ),
      ]),
    )
    .orderBy('units.sleeps_at')
    .limit(limit)
    .execute()
  return rows.map(toRecord)
}

/** Of any team: frozen units, longest asleep first; with `since` only those asleep since before then. */
export async function listFrozenUnits(
  db: Kysely<Database>,
  { now, since, hostId, limit }: { now: Date; since: Date | null; hostId?: string; limit: number },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.state', '=', 'sleeping')
    .where('units.frozen', '=', true)
    .$if(since !== null, (query) => query.where('units.changed_at', '<=', since ?? now))
    .$if(hostId !== undefined, (query) => query.where('units.host_id', '=', hostId ?? ''))
    .orderBy('units.changed_at')
    .limit(limit)
    .execute()
  return rows.map(toRecord)
}

/** Of one stack: its units that sleep and wake together, oldest first. */
export async function listUnitsTogether(
  db: Kysely<Database>,
  { teamId, stackId, now }: { teamId: string; stackId: string; now: Date },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.team_id', '=', teamId)
    .where('units.stack_id', '=', stackId)
    .where('units.sleeps_together', '=', true)
    .where('units.state', '<>', 'destroyed')
    .orderBy('units.id')
    .execute()
  return rows.map(toRecord)
}

/** Of any team: units in `error` whose hour has passed. */
export async function listUnitsDueToBeDestroyed(
  db: Kysely<Database>,
  { now, limit }: { now: Date; limit: number },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.state', '=', 'error')
    .where('units.destroys_at', '<=', now)
    .orderBy('units.destroys_at')
    .limit(limit)
    .execute()
  return rows.map(toRecord)
}

/** Of any team: units of this host that are not destroyed. */
export async function listUnitsOfHost(
  db: Kysely<Database>,
  { hostId, now, limit }: { hostId: string; now: Date; limit: number },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.host_id', '=', hostId)
    .where('units.state', '<>', 'destroyed')
    .orderBy('units.id')
    .limit(limit)
    .execute()
  return rows.map(toRecord)
}

/** Of any team: every unit that has, or may have, a machine on this host. */
export async function listUnitsWithMachines(
  db: Kysely<Database>,
  { hostId }: { hostId: string },
): Promise<Pick<UnitRecord, 'id' | 'hostId' | 'state' | 'generation' | 'frozen' | 'changedAt'>[]> {
  return await db
    .selectFrom('units')
    .select(['id', 'host_id as hostId', 'state', 'generation', 'frozen', 'changed_at as changedAt'])
    .where('host_id', '=', hostId)
    .where('state', 'not in', ['destroyed', 'error'])
    .execute()
}

/** Of any team: returns those that sleep, or are about to. */
export async function listUnitsAsleep(
  db: Kysely<Database>,
  { ids, now }: { ids: string[]; now: Date },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.id', '=', sql<string>`any(${ids})`)
    .where((where) =>
      where.or([
        where('units.state', '=', 'sleeping'),
        where.and([where('units.state', '=', 'stopping'), where('units.stopped_reason', '=', 'idle')]),
      ]),
    )
    .execute()
  return rows.map(toRecord)
}
