// Where every database begins: sql/baseline.sql, the schema of the release from which upgrades are tested
// (test/support/recorded-installation.ts). The migrations that led there are in the history alone.

import { readFile } from 'node:fs/promises'
import { type Kysely, sql, type Transaction } from 'kysely'
import type { Database } from '../schema.ts'

export const BASELINE = '0028-baseline'
/** The last step before, of a database that such a release has made. */
const LAST_BEFORE = '0028-order-of-env'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(await readFile(new URL('../sql/baseline.sql', import.meta.url), 'utf8')).execute(db)
}

/**
 * Takes a database that was made step by step for one that began here. Does nothing to any other one.
 *
 * @throws Error The database is older than the baseline.
 */
export async function adoptBaseline(db: Transaction<Database>): Promise<void> {
  const { rows: tables } = await sql<{ there: boolean }>`
    select to_regclass('kysely_migration') is not null as there
  `.execute(db)
  if (!tables[0]?.there) return
  const adopted =
    await sql`update kysely_migration set name = ${BASELINE} where name = ${LAST_BEFORE}`.execute(db)
  // Meters were runs once.
  if (adopted.numAffectedRows === 1n) {
    await sql`alter index runs_pkey rename to meters_pkey`.execute(db)
    await sql`alter sequence runs_id_seq rename to meters_id_seq`.execute(db)
  }
  const { rows: steps } = await sql<{ name: string }>`
    select name from kysely_migration where name <= ${BASELINE} order by name desc
  `.execute(db)
  const [newest] = steps
  if (newest === undefined) return
  if (newest.name !== BASELINE)
    throw new Error(
      `The database is older than this release can upgrade (its last step is ${newest.name}): ` +
        'start a release from before 28 November 2026 once, and then this one.',
    )
  await sql`delete from kysely_migration where name < ${BASELINE}`.execute(db)
}
