// Queries over units. A query for a caller takes the team; those of background jobs and reconcilers say in their name
// or comment that they cover all teams.

import { type Insertable, type Kysely, type RawBuilder, sql } from 'kysely'
import { statesWithoutName } from '../contract/states.ts'
import type { Database } from './schema.ts'
import { prepare } from './prepared.ts'
import { selectUnits, toRecord, type UnitRecord, type UnitRow, type UnitsTable } from './unit-record.ts'

/** Returns the unit. Nothing of it has cost anything or is published yet. */
export async function insertUnit(db: Kysely<Database>, unit: Insertable<UnitsTable>): Promise<UnitRecord> {
  const row = await db
    .insertInto('units')
    .values(unit)
    .returningAll()
    .returning([ofStack<string>('name').as('stack_name'), ofStack<boolean>('is_scope').as('stack_is_scope')])
    .executeTakeFirstOrThrow()
  return toRecord({ ...row, cost_nano_cents: 0n, endpoints: [] })
}

function ofStack<Value>(column: 'name' | 'is_scope'): RawBuilder<Value> {
  return sql<Value>`(select ${sql.ref(column)} from stacks where stacks.id = units.stack_id)`
}

/** Returns the unit if it is this team's. */
export async function findUnit(
  db: Kysely<Database>,
  given: { teamId: string; id: string; now: Date },
): Promise<UnitRecord | null> {
  const [row] = await unitOfTeam(db, given)
  return row ? toRecord(row) : null
}

const unitOfTeam = prepare<UnitRow, { teamId: string; id: string; now: Date }>(
  'unit_of_team',
  ['teamId', 'id', 'now'],
  ({ teamId, id, now }, db) =>
    sql`${selectUnits(db, now).where('units.id', '=', id).where('units.team_id', '=', teamId)}`,
)

/** Returns each of the units if it is that team's, in order. */
export async function findUnits(
  db: Kysely<Database>,
  { wanted, now }: { wanted: { teamId: string; id: string }[]; now: Date },
): Promise<(UnitRecord | null)[]> {
  const [first] = wanted
  if (first && wanted.length === 1) return [await findUnit(db, { ...first, now })]
  const [ids, teamIds] = [wanted.map(({ id }) => id), wanted.map(({ teamId }) => teamId)]
  const rows = await unitsOfTeams(db, { ids, teamIds, now })
  const found = new Map(rows.map((row) => [`${row.team_id} ${row.id}`, row]))
  return wanted.map(({ teamId, id }) => {
    const row = found.get(`${teamId} ${id}`)
    return row ? toRecord(row) : null
  })
}

const unitsOfTeams = prepare<UnitRow, { ids: string[]; teamIds: string[]; now: Date }>(
  'units_of_teams',
  ['ids', 'teamIds', 'now'],
  ({ ids, teamIds, now }, db) =>
    sql`${selectUnits(db, now).where(
      sql<boolean>`(units.id, units.team_id) in (select * from unnest(${ids}::text[], ${teamIds}::text[]))`,
    )}`,
)

/**
 * Locks the unit until the transaction ends: no other transaction changes or publishes it. Read it in a separate
 * statement afterwards, because a statement that waits for a lock sees other tables as they were before.
 */
export async function lockUnit(db: Kysely<Database>, id: string): Promise<void> {
  await sql`select 1 from units where id = ${id} for no key update`.execute(db)
}

/** The same for all units of a stack, always in the same order. */
export async function lockUnitsOfStack(db: Kysely<Database>, stackId: string): Promise<void> {
  await sql`
    select 1 from units where stack_id = ${stackId} and state <> 'destroyed' order by id for no key update
  `.execute(db)
}

/** The same for all copies that a fork makes. */
export async function lockUnitsOfFork(db: Kysely<Database>, forkId: string): Promise<void> {
  await sql`select 1 from units where fork_id = ${forkId} order by id for no key update`.execute(db)
}

/** Of any team: for the service's own work, never for a caller. */
export async function findUnitOfAnyTeam(
  db: Kysely<Database>,
  given: { id: string; now: Date },
): Promise<UnitRecord | null> {
  const [row] = await unitOfAnyTeam(db, given)
  return row ? toRecord(row) : null
}

const unitOfAnyTeam = prepare<UnitRow, { id: string; now: Date }>(
  'unit_of_any_team',
  ['id', 'now'],
  ({ id, now }, db) => sql`${selectUnits(db, now).where('units.id', '=', id)}`,
)

/** Whether the id belongs to any unit. Reveals nothing else about it. */
export async function unitExists(db: Kysely<Database>, id: string): Promise<boolean> {
  return (await db.selectFrom('units').select('id').where('id', '=', id).executeTakeFirst()) !== undefined
}

/** Returns the units of these stacks, oldest first. */
export async function listUnitsOfStacks(
  db: Kysely<Database>,
  { teamId, stackIds, now }: { teamId: string; stackIds: string[]; now: Date },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.team_id', '=', teamId)
    .where('units.stack_id', '=', sql<string>`any(${stackIds})`)
    .where('units.state', '<>', 'destroyed')
    .orderBy('units.id')
    .execute()
  return rows.map(toRecord)
}

/** In any state, oldest first. */
export async function listUnitsByIds(
  db: Kysely<Database>,
  { teamId, ids, now }: { teamId: string; ids: string[]; now: Date },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.team_id', '=', teamId)
    .where('units.id', '=', sql<string>`any(${ids})`)
    .orderBy('units.id')
    .execute()
  return rows.map(toRecord)
}

export async function unitNameTaken(
  db: Kysely<Database>,
  { stackId, name }: { stackId: string; name: string },
): Promise<boolean> {
  const row = await db
    .selectFrom('units')
    .select('id')
    .where('stack_id', '=', stackId)
    .where('name', '=', name)
    .where('state', 'not in', [...statesWithoutName])
    .executeTakeFirst()
  return row !== undefined
}

/** Returns the copies that a fork has made, in any state; oldest first. */
export async function listUnitsOfFork(
  db: Kysely<Database>,
  { teamId, forkId, now }: { teamId: string; forkId: string; now: Date },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.team_id', '=', teamId)
    .where('units.fork_id', '=', forkId)
    .orderBy('units.id')
    .execute()
  return rows.map(toRecord)
}

/** Returns those ids that belong to existing or past units; with `hostId` of units on that host. */
export async function findKnownIds(
  db: Kysely<Database>,
  ids: string[],
  { hostId }: { hostId?: string } = {},
): Promise<Set<string>> {
  const rows = await db
    .selectFrom('units')
    .select('id')
    .where('id', '=', sql<string>`any(${ids})`)
    .$if(hostId !== undefined, (query) => query.where('host_id', '=', hostId ?? ''))
    .execute()
  return new Set(rows.map(({ id }) => id))
}

/** Saves the steps done and the unit's address. Returns false if the unit is in another operation now. */
export async function saveProgress(
  db: Kysely<Database>,
  unit: Pick<UnitRecord, 'id' | 'revision' | 'address' | 'progress'>,
): Promise<boolean> {
  const result = await db
    .updateTable('units')
    .set({ address: unit.address, progress: unit.progress && JSON.stringify(unit.progress) })
    .where('id', '=', unit.id)
    .where('revision', '=', unit.revision)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** Does nothing if the unit is in another operation by now. */
export async function saveMemoryOutcome(
  db: Kysely<Database>,
  { id, revision, memoryOutcome }: Pick<UnitRecord, 'id' | 'revision' | 'memoryOutcome'>,
): Promise<void> {
  const unit = db.updateTable('units').where('id', '=', id).where('revision', '=', revision)
  await unit.set({ memory_outcome: memoryOutcome }).execute()
}

/** Of any team: whether the unit's state is still the one that was read. */
export async function isUnchanged(
  db: Kysely<Database>,
  { id, revision }: Pick<UnitRecord, 'id' | 'revision'>,
): Promise<boolean> {
  const row = await db
    .selectFrom('units')
    .select('id')
    .where('id', '=', id)
    .where('revision', '=', revision)
    .executeTakeFirst()
  return row !== undefined
}

/** Deletes what is kept of a unit beside its row: generated secrets, boot files and the log. One statement, for which a caller waits. */
export async function deleteKept(db: Kysely<Database>, id: string): Promise<void> {
  await db
    .with('files', (query) => query.deleteFrom('boot_files').where('unit_id', '=', id))
    .with('logs', (query) => query.deleteFrom('kept_logs').where('unit_id', '=', id))
    .deleteFrom('secrets')
    .where('owner_id', '=', id)
    .execute()
}
