// The rules of units: what they may reach. A version counts the changes of a unit's rules, and another one says which
// of them the engine has.

import { type Kysely, sql } from 'kysely'
import { transitionalStates } from '../contract/states.ts'
import { type EgressRules, openEgress } from '../lib/egress/rules.ts'
import type { Database } from './schema.ts'
import { selectUnits, toRecord, type UnitRecord } from './unit-record.ts'

/** Stored as null, so that a unit that may reach everything is like one of before there were rules. */
export function storedEgress(rules: EgressRules): EgressRules | null {
  const { mode, siblings, deny = [] } = rules
  return mode === openEgress.mode && siblings === openEgress.siblings && deny.length === 0 ? null : rules
}

/**
 * Writes the rules of a unit. A unit that does not run gets a new revision, so that a start from an older record fails and
 * reads it again; of one in a transitional state the operation goes on, and the rules follow it.
 */
export async function setEgress(
  db: Kysely<Database>,
  { id, rules }: { id: string; rules: EgressRules },
): Promise<void> {
  const stored = storedEgress(rules)
  await sql`
    update units
    set egress = ${stored === null ? null : JSON.stringify(stored)}::jsonb, egress_version = egress_version + 1,
      revision = case when state = any(${transitionalStates}) then revision else revision + 1 end
    where id = ${id}
  `.execute(db)
}

/** The engine has this version of the rules. */
export async function markEgressApplied(
  db: Kysely<Database>,
  { id, version, at }: { id: string; version: number; at: Date },
): Promise<void> {
  await db
    .updateTable('units')
    .set({ egress_applied_version: version, egress_applied_at: at })
    .where('id', '=', id)
    .where('egress_applied_version', '<', version)
    .execute()
}

/**
 * From now on the engine gets the stack of every unit in it. If it did not before, each other unit gets a new version of
 * its rules, so that the engine gets the stack at once.
 */
export async function makeScope(
  db: Kysely<Database>,
  stackId: string,
  { but = '' }: { but?: string } = {},
): Promise<void> {
  const { numUpdatedRows } = await db
    .updateTable('stacks')
    .set({ is_scope: true })
    .where('id', '=', stackId)
    .where('is_scope', '=', false)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) return
  await sql`
    update units set egress_version = egress_version + 1 where stack_id = ${stackId} and state <> 'destroyed' and id <> ${but}
  `.execute(db)
}

/** Of a team, or of a credential of it: those that exist, oldest first. */
export async function listUnitsBound(
  db: Kysely<Database>,
  { teamId, heldBy, now }: { teamId: string; heldBy: string | null; now: Date },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.team_id', '=', teamId)
    .$if(heldBy !== null, (query) => query.where('units.held_by', '=', heldBy ?? ''))
    .where('units.state', 'not in', ['error', 'destroying', 'destroyed'])
    .orderBy('units.id')
    .execute()
  return rows.map(toRecord)
}

/** Of any team: units in no transitional state whose rules the engine does not have yet. */
export async function listEgressNotApplied(db: Kysely<Database>, limit: number): Promise<{ id: string }[]> {
  return await db
    .selectFrom('units')
    .select('id')
    .where(sql<boolean>`egress_version > egress_applied_version`)
    .where('state', 'in', ['running', 'sleeping', 'stopped'])
    .orderBy('id')
    .limit(limit)
    .execute()
}
