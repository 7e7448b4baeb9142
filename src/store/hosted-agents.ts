// Environments of hosted agents, and what their controllers tell of sessions.

import { type Kysely, type Selectable, sql } from 'kysely'
import type { HostedSessionState } from '../contract/hosted-agents.ts'
import { limits } from '../contract/limits.ts'
import { costNanoCents } from './meters.ts'
import type { Database } from './schema.ts'
import type { HostedEnvironmentsTable, HostedSessionsTable } from './tables/hosted-agents.ts'

export type { HostedEnvironmentsTable, HostedPlan } from './tables/hosted-agents.ts'

export type HostedRecord = HostedEnvironmentsTable & { key_name: string; working: bigint }

type Named = { teamId: string; id: string }

/** Oldest first. */
export async function listHostedEnvironments(db: Kysely<Database>, teamId: string): Promise<HostedRecord[]> {
  return await selectEnvironments(db).where('hosted_environments.team_id', '=', teamId).execute()
}

export async function findHostedEnvironment(
  db: Kysely<Database>,
  { teamId, id }: Named,
): Promise<HostedRecord | null> {
  const found = await selectEnvironments(db)
    .where('hosted_environments.team_id', '=', teamId)
    .where('hosted_environments.id', '=', id)
    .executeTakeFirst()
  return found ?? null
}

/** Of any team: reveals nothing else about it. */
export async function hostedEnvironmentExists(db: Kysely<Database>, id: string): Promise<boolean> {
  const found = await db.selectFrom('hosted_environments').select('id').where('id', '=', id).execute()
  return found.length > 0
}

/** Of all teams: what is to be served now. */
export async function listHostedEnvironmentsOn(db: Kysely<Database>): Promise<HostedEnvironmentsTable[]> {
  return await db.selectFrom('hosted_environments').selectAll().where('is_on', '=', true).execute()
}

/** Hold the team's lock. */
export async function insertHostedEnvironment(
  db: Kysely<Database>,
  row: HostedEnvironmentsTable,
): Promise<void> {
  await db.insertInto('hosted_environments').values(row).execute()
}

type Change = Partial<Pick<HostedEnvironmentsTable, 'sealed_key' | 'plan'>> & { isOn: boolean }

/** What a controller of before tells is ignored from then on, and its note is gone. */
export async function changeHostedEnvironment(
  db: Kysely<Database>,
  { id, teamId, isOn, ...change }: Named & Change,
): Promise<void> {
  await db
    .updateTable('hosted_environments')
    .set({ ...change, is_on: isOn, state: isOn ? 'starting' : 'off', note: null, noted_at: null })
    .set({ version: sql`version + 1` })
    .where('team_id', '=', teamId)
    .where('id', '=', id)
    .execute()
}

export async function deleteHostedEnvironment(db: Kysely<Database>, { teamId, id }: Named): Promise<void> {
  await db.deleteFrom('hosted_environments').where('team_id', '=', teamId).where('id', '=', id).execute()
}

export async function deleteHostedEnvironments(db: Kysely<Database>, teamId: string): Promise<void> {
  await db.deleteFrom('hosted_environments').where('team_id', '=', teamId).execute()
}

/** The units that its key has made for sessions and that are not destroyed. */
export async function listHostedUnits(db: Kysely<Database>, credentialId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('units')
    .select('id')
    .where('held_by', '=', credentialId)
    .where('state', 'not in', ['destroying', 'destroyed'])
    .execute()
  return rows.map(({ id }) => id)
}

type Told = Pick<HostedEnvironmentsTable, 'id' | 'version'>

/** Returns whether the controller that tells it is still the one of this environment. */
export async function noteHostedState(
  db: Kysely<Database>,
  { id, version, ...told }: Told & Pick<HostedEnvironmentsTable, 'state' | 'note' | 'noted_at'>,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('hosted_environments')
    .set(told)
    .where('id', '=', id)
    .where('version', '=', version)
    .where('is_on', '=', true)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

type SessionNews = {
  id: string
  session: string
  state: HostedSessionState
  note: string | null
  /** Of work that begins. */
  unitId: string | null
  at: Date
}

/** `working` begins another turn. One that is not known yet is remembered, as long as its environment is there. */
export async function noteHostedSession(db: Kysely<Database>, news: SessionNews): Promise<void> {
  const { id, session, state, note, unitId, at } = news
  const turns = state === 'working' ? 1 : 0
  await sql`
    insert into hosted_sessions (environment_id, session, unit_id, state, note, turns, began_at, changed_at)
    select id, ${session}, ${unitId}, ${state}, ${note}, ${turns}, ${at}, ${at}
    from hosted_environments where id = ${id}
    on conflict (environment_id, session) do update set
      unit_id = coalesce(excluded.unit_id, hosted_sessions.unit_id), state = excluded.state, note = excluded.note,
      turns = hosted_sessions.turns + excluded.turns, changed_at = excluded.changed_at
  `.execute(db)
}

/** When a controller begins, nothing of its environment is under way. */
export async function restHostedSessions(db: Kysely<Database>, id: string): Promise<void> {
  await db
    .updateTable('hosted_sessions')
    .set({ state: 'waiting' })
    .where('environment_id', '=', id)
    .where('state', '=', 'working')
    .execute()
}

/** Forgets those that changed least lately, beyond what is kept of each environment. */
export async function forgetHostedSessions(db: Kysely<Database>): Promise<void> {
  await sql`
    delete from hosted_sessions using (
      select environment_id, session,
        row_number() over (partition by environment_id order by changed_at desc) as place
      from hosted_sessions
    ) as placed
    where placed.place > ${limits.hostedSessionsKept}
      and hosted_sessions.environment_id = placed.environment_id and hosted_sessions.session = placed.session
  `.execute(db)
}

export type HostedSessionRecord = Selectable<HostedSessionsTable> & {
  unit_name: string | null
  unit_state: string | null
  cost_nano_cents: bigint | null
}

/** Those that changed last, newest first, with their units as they are. */
export async function listHostedSessions(
  db: Kysely<Database>,
  { id, now }: { id: string; now: Date },
): Promise<HostedSessionRecord[]> {
  return await db
    .selectFrom('hosted_sessions')
    .leftJoin('units', 'units.id', 'hosted_sessions.unit_id')
    .selectAll('hosted_sessions')
    .select(['units.name as unit_name', 'units.state as unit_state'])
    .select(costNanoCents(now).as('cost_nano_cents'))
    .where('environment_id', '=', id)
    .orderBy('changed_at', 'desc')
    .limit(limits.hostedSessionsShown)
    .execute()
}

function selectEnvironments(db: Kysely<Database>) {
  return db
    .selectFrom('hosted_environments')
    .innerJoin('credentials', 'credentials.id', 'hosted_environments.credential_id')
    .selectAll('hosted_environments')
    .select('credentials.name as key_name')
    .select((select) =>
      select
        .selectFrom('hosted_sessions')
        .select(({ fn }) => fn.countAll<bigint>().as('count'))
        .whereRef('hosted_sessions.environment_id', '=', 'hosted_environments.id')
        .where('hosted_sessions.state', '=', 'working')
        .$asScalar()
        .$notNull()
        .as('working'),
    )
    .orderBy('hosted_environments.id')
}
