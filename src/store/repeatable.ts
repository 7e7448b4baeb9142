// SQL that is applied again whenever its text changes: the functions of the ledger. Since released migrations never
// change, the current functions would otherwise be spread over all migrations that replaced one (decisions/money.md).

import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'

/** In the order in which they are applied. Applying one again is harmless. */
const files = ['ledger'] as const

/**
 * Call it after the migrations, in their transaction, which keeps other processes from applying it at the same time.
 */
export async function applyRepeatableSql(db: Kysely<Database>): Promise<void> {
  for (const name of files) {
    const { text, sha256 } = await readSql(name)
    if ((await findApplied(db, name)) === sha256) continue
    await sql.raw(text).execute(db)
    await sql`
      insert into repeatable_sql (name, sha256) values (${name}, ${sha256})
      on conflict (name) do update set sha256 = excluded.sha256
    `.execute(db)
  }
}

/** Whether `applyRepeatableSql` has nothing to do. The migrations have run. */
export async function isRepeatableSqlApplied(db: Kysely<Database>): Promise<boolean> {
  for (const name of files) if ((await findApplied(db, name)) !== (await readSql(name)).sha256) return false
  return true
}

async function readSql(name: (typeof files)[number]): Promise<{ text: string; sha256: string }> {
  const text = await readFile(new URL(`./sql/${name}.sql`, import.meta.url), 'utf8')
  return { text, sha256: createHash('sha256').update(text).digest('hex') }
}

/** Returns null if it was never applied. */
async function findApplied(db: Kysely<Database>, name: string): Promise<string | null> {
  const { rows } = await sql<{ sha256: string }>`
    select sha256 from repeatable_sql where name = ${name}
  `.execute(db)
  return rows[0]?.sha256 ?? null
}
