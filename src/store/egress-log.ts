// Stores the egress log of units: one row for each kind of line and minute (lib/egress/seen.ts).

import { type Kysely, sql } from 'kysely'
import { type MachineSeen, type SeenLine, seenLine } from '../lib/egress/seen.ts'
import type { Database } from './schema.ts'

/** `changed`: greater for each change of any line. */
export type StoredLine = SeenLine & { changed: number }

/** Adds to lines that are there, of units of this host alone. Returns how many lines each unit has more. */
export async function addToEgressLog(
  db: Kysely<Database>,
  { hostId, lines }: { hostId: string; lines: MachineSeen[] },
): Promise<{ unitId: string; added: number }[]> {
  const records = lines.map((line) => ({
    unit_id: line.machine,
    minute: new Date(line.minute),
    host: line.host ?? '',
    port: line.port ?? 0,
    protocol: line.protocol,
    decision: line.decision,
    reason: line.reason,
    rule: line.rule ?? '',
    secret: line.secret ?? '',
    address: line.address ?? '',
    bytes_in: line.bytesIn,
    bytes_out: line.bytesOut,
    count: line.count,
  }))
  const { rows } = await sql<{ unit_id: string; added: bigint }>`
    with written as (
      insert into egress_log as line
      select seen.*, nextval('egress_log_changes')
      from jsonb_to_recordset(${JSON.stringify(records)}::jsonb) as seen (
        unit_id text, minute timestamptz, host text, port integer, protocol text, decision text, reason text, rule text,
        secret text, address text, bytes_in bigint, bytes_out bigint, count bigint
      )
      join units on units.id = seen.unit_id and units.host_id = ${hostId}
      on conflict (unit_id, minute, host, port, protocol, decision, reason, rule, secret) do update set
        address = case when excluded.address = '' then line.address else excluded.address end,
        bytes_in = line.bytes_in + excluded.bytes_in,
        bytes_out = line.bytes_out + excluded.bytes_out,
        count = line.count + excluded.count,
        changed = excluded.changed
      returning unit_id, xmax = 0 as is_new
    )
    select unit_id, count(*) filter (where is_new) as added from written group by unit_id
  `.execute(db)
  return rows.map(({ unit_id, added }) => ({ unitId: unit_id, added: Number(added) }))
}

export type EgressLogFilter = {
  unitId: string
  decision: SeenLine['decision'] | null
  limit: number
  /** Lines that changed after this, oldest change first; null: the newest. */
  after: number | null
  /** Lines of this minute and later. */
  since: Date | null
}

/** Returns lines in the order of their last change. */
export async function listEgressLog(
  db: Kysely<Database>,
  { unitId, decision, limit, after, since }: EgressLogFilter,
): Promise<StoredLine[]> {
  const isForward = after !== null || since !== null
  const rows = await db
    .selectFrom('egress_log')
    .selectAll()
    .where('unit_id', '=', unitId)
    .$if(decision !== null, (query) => query.where('decision', '=', decision ?? ''))
    .$if(after !== null, (query) => query.where('changed', '>', BigInt(after ?? 0)))
    .$if(since !== null, (query) => query.where('minute', '>=', since ?? new Date(0)))
    .orderBy('changed', isForward ? 'asc' : 'desc')
    .limit(limit)
    .execute()
  const lines = rows.map((row) => ({
    ...seenLine.parse({
      minute: row.minute.getTime(),
      host: row.host || null,
      address: row.address || null,
      port: row.port || null,
      protocol: row.protocol,
      decision: row.decision,
      reason: row.reason,
      rule: row.rule || null,
      secret: row.secret || null,
      bytesIn: Number(row.bytes_in),
      bytesOut: Number(row.bytes_out),
      count: Number(row.count),
    }),
    changed: Number(row.changed),
  }))
  return isForward ? lines : lines.toReversed()
}

/** Keeps the lines of a unit that changed last. */
export async function trimEgressLog(
  db: Kysely<Database>,
  { unitId, most }: { unitId: string; most: number },
): Promise<void> {
  await sql`
    delete from egress_log where unit_id = ${unitId} and changed <= (
      select changed from egress_log where unit_id = ${unitId} order by changed desc offset ${most} limit 1
    )
  `.execute(db)
}

/** Of any unit. Returns how many lines were deleted. */
export async function deleteEgressLog(
  db: Kysely<Database>,
  { before, limit }: { before: Date; limit: number },
): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from egress_log where ctid = any(array(
      select ctid from egress_log where minute < ${before} order by minute limit ${limit} for update skip locked
    ))
  `.execute(db)
  return Number(numAffectedRows)
}
