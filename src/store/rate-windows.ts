// The recent calls of each credential by rate, kept over restarts of the server. Rows change by compare-and-set on
// their revision: of concurrent changes one succeeds, and the others get the row that it wrote.

import { type Kysely, sql } from 'kysely'
import { prepare } from './prepared.ts'
import type { Database } from './schema.ts'
import type { RateWindowsTable, Spent } from './tables/rate-windows.ts'

export type RateWindowRow = { credentialId: string; spentAt: Date; spent: Spent; revision: number }

/** `revision` is that of the row to replace, null if there is none. */
export type RateWindowChange = Omit<RateWindowRow, 'revision'> & { revision: number | null }

/**
 * A row that is deleted and created again never repeats a revision: it begins with the time, and no row changes a
 * thousand times a second.
 */
export function revisionAfter({ revision, spentAt }: RateWindowChange): number {
  return revision === null ? spentAt.getTime() : revision + 1
}

/** Returns the rows that others had changed, as they are now; null for one that was just inserted or deleted. */
export async function saveRateWindows(
  db: Kysely<Database>,
  changes: RateWindowChange[],
): Promise<Map<string, RateWindowRow | null>> {
  const wanted = changes.map((change) => ({
    credential_id: change.credentialId,
    spent_at: change.spentAt,
    spent: change.spent,
    before: change.revision,
    revision: revisionAfter(change),
  }))
  const lost = await replaceRows(db, { wanted: JSON.stringify(wanted) })
  return new Map(lost.map((row) => [row.credential_id, toRow(row)]))
}

// Locked in order, to avoid deadlocks.
const replaceRows = prepare<{ credential_id: string } & Nullable<RateWindowsTable>, { wanted: string }>(
  'replace_rate_windows',
  ['wanted'],
  ({ wanted }) => sql`
    with wanted as materialized (
      select * from jsonb_to_recordset(${wanted}::jsonb)
        as wanted (credential_id text, spent_at timestamptz, spent jsonb, before bigint, revision bigint)
      order by credential_id
    ), locked as materialized (
      select * from rate_windows where credential_id in (select credential_id from wanted)
      order by credential_id for update
    ), updated as (
      update rate_windows
      set spent_at = wanted.spent_at, spent = wanted.spent, revision = wanted.revision
      from wanted join locked on locked.credential_id = wanted.credential_id and locked.revision = wanted.before
      where rate_windows.credential_id = wanted.credential_id
      returning rate_windows.credential_id
    ), inserted as (
      insert into rate_windows (credential_id, spent_at, spent, revision)
      select credential_id, spent_at, spent, revision from wanted
      where before is null and credential_id not in (select credential_id from locked)
      on conflict do nothing
      returning credential_id
    )
    select wanted.credential_id, locked.spent_at, locked.spent, locked.revision
    from wanted left join locked using (credential_id)
    where wanted.credential_id not in (
      select credential_id from updated union all select credential_id from inserted
    )
  `,
)

export async function findRateWindow(
  db: Kysely<Database>,
  credentialId: string,
): Promise<RateWindowRow | null> {
  const row = await db
    .selectFrom('rate_windows')
    .selectAll()
    .where('credential_id', '=', credentialId)
    .executeTakeFirst()
  return row ? toRow(row) : null
}

/** Returns the existing rows by the credential's id. */
export async function listRateWindows(
  db: Kysely<Database>,
  credentialIds: string[],
): Promise<Map<string, RateWindowRow | null>> {
  const rows = await db
    .selectFrom('rate_windows')
    .selectAll()
    .where('credential_id', '=', sql<string>`any(${credentialIds})`)
    .execute()
  return new Map(rows.map((row) => [row.credential_id, toRow(row)]))
}

/** Of any team: deletes rows that were not used since then. */
export async function deleteRateWindows(
  db: Kysely<Database>,
  { unusedSince, limit }: { unusedSince: Date; limit: number },
): Promise<void> {
  await sql`
    delete from rate_windows where credential_id in (
      select credential_id from rate_windows where spent_at < ${unusedSince}
      order by credential_id limit ${limit} for update skip locked
    )
  `.execute(db)
}

type Nullable<Row> = { [Column in keyof Row]: Row[Column] | null }

function toRow(row: { credential_id: string } & Nullable<RateWindowsTable>): RateWindowRow | null {
  const { credential_id: credentialId, spent_at: spentAt, spent, revision } = row
  if (spentAt === null || spent === null) return null
  return { credentialId, spentAt, spent, revision: Number(revision) }
}
