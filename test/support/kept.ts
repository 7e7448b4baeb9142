// All that a service has written down: every column of every table, bytes also as what they may spell, and its log.

import { sql } from 'kysely'
import type { Service } from './service.ts'

export async function everythingKept({ app, logged }: Service): Promise<string> {
  const tables = await sql<{ name: string }>`
    select table_name as name from information_schema.tables where table_schema = 'public'
  `.execute(app.db)
  const rows = await Promise.all(
    tables.rows.map(({ name }) =>
      sql<Record<string, unknown>>`select * from ${sql.table(name)}`.execute(app.db),
    ),
  )
  const values = rows.flatMap((result) => result.rows).flatMap((row) => Object.values(row))
  return [...values.map(spelled), ...logged].join('\n')
}

function spelled(value: unknown): string {
  if (Buffer.isBuffer(value)) return `${value.toString('latin1')} ${value.toString('hex')}`
  return typeof value === 'bigint' ? String(value) : JSON.stringify(value)
}

/** A token in the forms it could be kept in; of ours the secret part alone gives it away. */
export function formsOf(token: string): string[] {
  const secret = /_([A-Za-z0-9_-]{43})$/.exec(token)?.[1] ?? token
  return [
    secret,
    encodeURIComponent(secret),
    Buffer.from(secret).toString('hex'),
    Buffer.from(secret).toString('base64').replace(/=+$/, ''),
    Buffer.from(secret, 'base64url').toString('hex'),
  ]
}
