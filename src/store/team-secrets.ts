// Secrets of teams, encrypted by the caller (lib/crypto.ts), and the units that bind them: a binding is an entry
// `{ teamSecret }` of a unit's environment, and nothing else.

import { type Kysely, sql } from 'kysely'
import type { Env } from '../contract/env.ts'
import { transitionalStates } from '../contract/states.ts'
import type { Database } from './schema.ts'
import type { TeamSecretsTable } from './tables/secrets.ts'
import type { UnitRecord } from './unit-record.ts'

export type { TeamSecretsTable } from './tables/secrets.ts'

/** Units in these states have no machine any more, or lose it. */
const ending = ['error', 'destroying', 'destroyed'] as const

/** By name. */
export async function listTeamSecrets(db: Kysely<Database>, teamId: string): Promise<TeamSecretsTable[]> {
  return await db
    .selectFrom('team_secrets')
    .selectAll()
    .where('team_id', '=', teamId)
    .orderBy('name')
    .execute()
}

/** Also replaces one of the same name. Hold the team's lock. */
export async function putTeamSecret(db: Kysely<Database>, secret: TeamSecretsTable): Promise<void> {
  const { hosts, methods, paths, placeholder, sealed, updated_at } = secret
  await db
    .insertInto('team_secrets')
    .values(secret)
    .onConflict((conflict) =>
      conflict
        .columns(['team_id', 'name'])
        .doUpdateSet({ hosts, methods, paths, placeholder, sealed, updated_at }),
    )
    .execute()
}

/** Returns false if there was none. Hold the team's lock. */
export async function deleteTeamSecret(
  db: Kysely<Database>,
  { teamId, name }: { teamId: string; name: string },
): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('team_secrets')
    .where('team_id', '=', teamId)
    .where('name', '=', name)
    .executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}

export async function deleteTeamSecrets(db: Kysely<Database>, teamId: string): Promise<void> {
  await db.deleteFrom('team_secrets').where('team_id', '=', teamId).execute()
}

/** Those that a unit binds now, whatever an older record of it says. */
export async function listTeamSecretsOfUnit(
  db: Kysely<Database>,
  unitId: string,
): Promise<TeamSecretsTable[]> {
  return await db
    .selectFrom('team_secrets')
    .innerJoin('units', 'units.team_id', 'team_secrets.team_id')
    .selectAll('team_secrets')
    .where('units.id', '=', unitId)
    .where(sql<boolean>`team_secrets.name in (${boundNames})`)
    .orderBy('team_secrets.name')
    .execute()
}

/** How many units bind each secret of a team, by its name. */
export async function countUnitsBinding(db: Kysely<Database>, teamId: string): Promise<Map<string, number>> {
  const { rows } = await sql<{ name: string; units: string }>`
    select bound.name, count(*) as units
    from units cross join lateral (${boundNames}) as bound (name)
    where units.team_id = ${teamId} and state <> all(${ending})
    group by bound.name
  `.execute(db)
  return new Map(rows.map(({ name, units }) => [name, Number(units)]))
}

/**
 * Gives the units that bind a secret a new version, so that the engine gets the new value. Returns them, oldest
 * first.
 */
export async function renewUnitsBinding(
  db: Kysely<Database>,
  { teamId, name }: { teamId: string; name: string },
): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    update units set egress_version = egress_version + 1
    where team_id = ${teamId} and state <> all(${ending}) and ${name} in (${boundNames})
    returning id
  `.execute(db)
  return rows.map(({ id }) => id).toSorted()
}

/**
 * Takes entries out of a unit's environment. As with its rules (store/egress.ts), a unit in a stable state gets a new
 * revision, so that no start by an older record gives them back.
 */
export async function setEnv(
  db: Kysely<Database>,
  { id, spec }: Pick<UnitRecord, 'id' | 'spec'>,
  env: Env,
): Promise<void> {
  await sql`
    update units
    set spec = ${JSON.stringify({ ...spec, env })}::json, egress_version = egress_version + 1,
      revision = case when state = any(${transitionalStates}) then revision else revision + 1 end
    where id = ${id}
  `.execute(db)
}

/** The names that the unit of the outer query binds. */
const boundNames = sql`
  select distinct entry.value->>'teamSecret' from json_each(units.spec->'env') as entry
  where json_typeof(entry.value) = 'object' and entry.value->>'teamSecret' is not null
`
