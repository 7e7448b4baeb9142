// Stores what units used: a row for each minute and each hour in which one ran. A sample has counters since the start of
// its run; what is added is their difference to the last sample, which a crash between two samples does not change.

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'
import type { UnitMetricsTable } from './tables/unit-metrics.ts'

export type UnitSample = {
  unitId: string
  generation: number
  cpuMs: number
  memoryBytes: number
  receivedBytes: number
  sentBytes: number
}

export type MetricsStep = UnitMetricsTable['step']

/** Adds samples of different units to their minute and their hour. */
export async function addUnitSamples(
  db: Kysely<Database>,
  { at, samples }: { at: Date; samples: UnitSample[] },
): Promise<void> {
  if (samples.length === 0) return
  const records = samples.map((sample) => ({
    unit_id: sample.unitId,
    generation: sample.generation,
    cpu_ms: Math.round(sample.cpuMs),
    memory_bytes: Math.round(sample.memoryBytes),
    received_bytes: Math.round(sample.receivedBytes),
    sent_bytes: Math.round(sample.sentBytes),
  }))
  // The row of the hour stays for a month, so the last sample is found also after a day asleep.
  await sql`
    with seen as (
      select given.*,
        given.cpu_ms - before.cpu as cpu_new,
        given.received_bytes - before.received as received_new,
        given.sent_bytes - before.sent as sent_new
      from jsonb_to_recordset(${JSON.stringify(records)}::jsonb) as given (
        unit_id text, generation integer, cpu_ms bigint, memory_bytes bigint, received_bytes bigint, sent_bytes bigint
      )
      join units on units.id = given.unit_id
      left join lateral (
        select * from unit_metrics
        where unit_metrics.unit_id = given.unit_id and step = 'hour' order by at desc limit 1
      ) last on true
      cross join lateral (
        select
          case when last.generation = given.generation then least(last.cpu_total_ms, given.cpu_ms) else 0 end as cpu,
          case when last.generation = given.generation then least(last.received_total, given.received_bytes) else 0 end as received,
          case when last.generation = given.generation then least(last.sent_total, given.sent_bytes) else 0 end as sent
      ) before
    )
    insert into unit_metrics as kept
    select unit_id, step, date_trunc(step, ${at}::timestamptz, 'UTC'), generation, cpu_ms, received_bytes, sent_bytes,
      cpu_new, memory_bytes, received_new, sent_new
    from seen cross join (values ('minute'), ('hour')) as steps (step)
    on conflict (unit_id, step, at) do update set
      generation = excluded.generation,
      cpu_total_ms = excluded.cpu_total_ms,
      received_total = excluded.received_total,
      sent_total = excluded.sent_total,
      cpu_ms = kept.cpu_ms + excluded.cpu_ms,
      memory_bytes = greatest(kept.memory_bytes, excluded.memory_bytes),
      received_bytes = kept.received_bytes + excluded.received_bytes,
      sent_bytes = kept.sent_bytes + excluded.sent_bytes
  `.execute(db)
}

export type MetricsPoint = {
  at: Date
  cpuMs: number
  memoryBytes: number
  receivedBytes: number
  sentBytes: number
}

/** Oldest first. */
export async function listUnitMetrics(
  db: Kysely<Database>,
  { unitId, step, since }: { unitId: string; step: MetricsStep; since: Date },
): Promise<MetricsPoint[]> {
  const rows = await db
    .selectFrom('unit_metrics')
    .select(['at', 'cpu_ms', 'memory_bytes', 'received_bytes', 'sent_bytes'])
    .where('unit_id', '=', unitId)
    .where('step', '=', step)
    .where('at', '>=', since)
    .orderBy('at')
    .execute()
  return rows.map((row) => ({
    at: row.at,
    cpuMs: Number(row.cpu_ms),
    memoryBytes: Number(row.memory_bytes),
    receivedBytes: Number(row.received_bytes),
    sentBytes: Number(row.sent_bytes),
  }))
}

/** Processor time by hour of the units of a team that were made last and ran since then. */
export async function listTeamCpu(
  db: Kysely<Database>,
  { teamId, since, most }: { teamId: string; since: Date; most: number },
): Promise<{ unitId: string; at: Date; cpuMs: number }[]> {
  const rows = await db
    .selectFrom('unit_metrics')
    .select(['unit_id', 'at', 'cpu_ms'])
    .where('step', '=', 'hour')
    .where('at', '>=', since)
    .where('unit_id', 'in', (query) =>
      query
        .selectFrom('units')
        .select('id')
        .where('team_id', '=', teamId)
        .where('state', '!=', 'destroyed')
        .orderBy('created_at', 'desc')
        .limit(most),
    )
    .orderBy('unit_id')
    .orderBy('at')
    .execute()
  return rows.map((row) => ({ unitId: row.unit_id, at: row.at, cpuMs: Number(row.cpu_ms) }))
}

/** Units of any team whose machines run now. */
export async function listRunningUnits(db: Kysely<Database>): Promise<{ id: string; hostId: string }[]> {
  const running = db.selectFrom('units').select(['id', 'host_id']).where('state', '=', 'running')
  const rows = await running.orderBy('id').execute()
  return rows.map((row) => ({ id: row.id, hostId: row.host_id }))
}

/** Returns how many rows were deleted. */
export async function deleteUnitMetrics(
  db: Kysely<Database>,
  { step, before, limit }: { step: MetricsStep; before: Date; limit: number },
): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from unit_metrics where ctid = any(array(
      select ctid from unit_metrics where step = ${step} and at < ${before} order by at limit ${limit}
      for update skip locked
    ))
  `.execute(db)
  return Number(numAffectedRows)
}
