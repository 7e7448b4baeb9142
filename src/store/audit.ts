// The audit log: one row per authenticated call (spec 2.12). Rows are written in groups and never updated once
// closed; a row without a status belongs to a call whose process died.

import { type Kysely, type RawBuilder, type Selectable, sql } from 'kysely'
import { firstIdSince } from '../lib/ids.ts'
import { prepare } from './prepared.ts'
import type { Database } from './schema.ts'
import type { AuditTable, Via } from './tables/audit.ts'

export type { AuditTable, Via } from './tables/audit.ts'

export type AuditRow = {
  id: string
  teamId: string
  credentialKind: 'key' | 'oauth' | 'session'
  credentialId: string
  credentialName: string
  userId: string | null
  action: string
  target: string | null
  input: unknown
  requestId: string
  via: Via
  agentName: string | null
  agentVersion: string | null
  userAgent: string | null
  startedAt: Date
  outcome: AuditOutcome | null
}

export type AuditOutcome = {
  target: string | null
  durationMs: number
  status: number
  errorCode: string | null
  /** What is added to the input; null: nothing. */
  added: Record<string, unknown> | null
}

/** One statement with one parameter for any number of rows, so that it is planned once. */
export async function insertAuditRows(db: Kysely<Database>, rows: AuditRow[]): Promise<void> {
  const records = rows.map((row) => ({
    id: row.id,
    team_id: row.teamId,
    credential_kind: row.credentialKind,
    credential_id: row.credentialId,
    credential_name: row.credentialName,
    user_id: row.userId,
    action: row.action,
    target: row.outcome?.target ?? row.target,
    input: row.input,
    request_id: row.requestId,
    via: row.via,
    agent_name: row.agentName,
    agent_version: row.agentVersion,
    user_agent: row.userAgent,
    started_at: row.startedAt,
    duration_ms: row.outcome?.durationMs ?? null,
    status: row.outcome?.status ?? null,
    error_code: row.outcome?.errorCode ?? null,
    cost_delta_nanocents: 0,
  }))
  await insertRows(db, { rows: storableJson(records) })
}

const insertRows = prepare<never, { rows: string }>(
  'insert_audit_rows',
  ['rows'],
  ({ rows }) => sql`insert into audit select * from jsonb_populate_recordset(null::audit, ${rows}::jsonb)`,
)

/** In JSON, NUL and lone surrogates are escapes. Text that only looks like one takes the slower path. */
const REFUSED = /\\u(?:0000|d[89a-f])/

/** Replaces what Postgres refuses, NUL and lone surrogates, since one refused row would fail its whole group. */
function storableJson(rows: unknown[]): string {
  const text = JSON.stringify(rows)
  return REFUSED.test(text) ? JSON.stringify(rows, storable) : text
}

function storable(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '') : value
}

/**
 * Completes rows that were written at the beginning of their call, with its result and the cost of its unit during
 * the call.
 */
export async function closeAuditRows(
  db: Kysely<Database>,
  endings: { id: string; outcome: AuditOutcome }[],
): Promise<void> {
  const rows = endings.map(({ id, outcome }) => ({
    id,
    target: outcome.target,
    duration_ms: outcome.durationMs,
    status: outcome.status,
    error_code: outcome.errorCode,
    added: outcome.added,
  }))
  await closeRows(db, { rows: storableJson(rows) })
}

const closeRows = prepare<never, { rows: string }>(
  'close_audit_rows',
  ['rows'],
  ({ rows }) => sql`
    update audit
    set target = ending.target, duration_ms = ending.duration_ms, status = ending.status,
        error_code = ending.error_code,
        input = coalesce(audit.input || ending.added, audit.input), cost_delta_nanocents = ${costMeanwhile()}
    from jsonb_to_recordset(${rows}::jsonb) as ending (
      id text, target text, duration_ms double precision, status integer, error_code text, added jsonb
    )
    where audit.id = ending.id and audit.status is null
  `,
)

/**
 * The cost of the call's unit from the beginning of the call to its end. The answer itself proves that the unit ran,
 * whatever the last heartbeat; 503 proves nothing, nor does what was answered without a host that is away.
 */
function costMeanwhile(): RawBuilder<bigint> {
  const countedBy = (moment: RawBuilder<unknown>) =>
    sql`counted(counted_before, price_nano_cents_per_hour, ms_between(meters.started_at, ${moment}))`
  const ended = sql`audit.started_at + ending.duration_ms * interval '1 millisecond'`
  const proven = sql`(select at from heartbeats join hosts using (id)
    where hosts.id = meters.host_id and (ending.status = 503 or hosts.away_since is not null))`
  return sql<bigint>`coalesce((
    select sum(greatest(0, ${countedBy(sql`least(meters.ended_at, ${ended}, ${proven})`)} - ${countedBy(sql`audit.started_at`)}))
    from meters
    where meters.unit_id = ending.target and meters.team_id = audit.team_id
      and (meters.ended_at is null or meters.ended_at > audit.started_at)
  ), 0)`
}

/**
 * Of any team: deletes rows from before that time, oldest first, skipping rows that another process is deleting.
 * Returns how many were deleted.
 */
export async function deleteAuditRows(
  db: Kysely<Database>,
  { begunBefore, limit }: { begunBefore: Date; limit: number },
): Promise<number> {
  // Ids are in the order of time, so the oldest rows are together at the beginning of the primary key.
  const { numAffectedRows = 0n } = await sql`
    delete from audit where id in (
      select id from audit where started_at < ${begunBefore} and id < ${firstIdSince('audit', begunBefore)}
      order by id limit ${limit} for update skip locked
    )
  `.execute(db)
  return Number(numAffectedRows)
}

export type AuditFilter = {
  teamId: string
  credentialId: string | null
  agentName: string | null
  action: string | null
  target: string | null
  /** From then on, and before then; ids are in the order of time. */
  since: Date | null
  until: Date | null
  failed: boolean
  /** Only these; null: all. */
  actions: readonly string[] | null
  /** Only rows older than the one with this id. */
  before: string | null
  limit: number
}

export type AuditRecord = Selectable<AuditTable>

/** The names of units, stacks and keys of a team by their ids, also of those that are gone. */
export async function namesOfTargets(
  db: Kysely<Database>,
  { teamId, ids }: { teamId: string; ids: string[] },
): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const named = (table: 'units' | 'stacks' | 'credentials') =>
    db.selectFrom(table).select(['id', 'name']).where('team_id', '=', teamId).where('id', 'in', ids)
  const rows = await named('units').unionAll(named('stacks')).unionAll(named('credentials')).execute()
  return new Map(rows.map(({ id, name }) => [id, name]))
}

/** Newest first, by the beginning of the calls. */
export async function listAuditOfTeam(db: Kysely<Database>, filter: AuditFilter): Promise<AuditRecord[]> {
  const { teamId, credentialId, agentName, action, target, since, until, failed, actions, before, limit } =
    filter
  const ends = [before, until && firstIdSince('audit', until)].filter((id) => id !== null)
  const end = ends.toSorted()[0] ?? null
  // Alone, it is the newest of each action: reads are most of a log, and would all be walked over.
  const isAlone = [credentialId, agentName, action, target].every((each) => each === null) && !failed
  const newestOf = (names: readonly string[]) => sql<string>`(
    select newest.id from unnest(${names}::text[]) as wanted (action)
    cross join lateral (
      select id from audit where team_id = ${teamId} and audit.action = wanted.action
        and (${end}::text is null or id < ${end}) order by id desc limit ${limit}
    ) newest
  )`
  return await db
    .selectFrom('audit')
    .selectAll()
    .where('team_id', '=', teamId)
    .$if(actions !== null, (query) => query.where('action', 'in', actions ?? []))
    .$if(actions !== null && isAlone, (query) => query.where('id', 'in', newestOf(actions ?? [])))
    .$if(credentialId !== null, (query) => query.where('credential_id', '=', credentialId ?? ''))
    .$if(agentName !== null, (query) => query.where('agent_name', '=', agentName ?? ''))
    .$if(action !== null, (query) => query.where('action', '=', action ?? ''))
    .$if(target !== null, (query) => query.where('target', '=', target ?? ''))
    .$if(failed, (query) => query.where('status', '>=', 400))
    .$if(since !== null, (query) => query.where('id', '>=', firstIdSince('audit', since ?? new Date(0))))
    .$if(end !== null, (query) => query.where('id', '<', end ?? ''))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}
