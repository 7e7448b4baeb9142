// Boot files: stored encrypted, since people put credentials into them, and written again at each start.

import type { Kysely } from 'kysely'
import type { App } from '../../../app.ts'
import { bootFileContents, type BootFiles } from '../../../contract/files.ts'
import type { SecretKey } from '../../../lib/crypto.ts'
import { insertBootFiles, listBootFiles } from '../../../store/boot-files.ts'
import type { Database } from '../../../store/db.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'

/** Returns path and size of each, as answers show them. */
export function declaredFiles(files: BootFiles): { path: string; bytes: number }[] {
  return bootFileContents(files).map(({ path, content }) => ({ path, bytes: content.length }))
}

export async function keepBootFiles(
  db: Kysely<Database>,
  key: SecretKey,
  { teamId, unitId }: { teamId: string; unitId: string },
  files: BootFiles,
): Promise<void> {
  await insertBootFiles(
    db,
    bootFileContents(files).map(({ path, content }) => ({
      unit_id: unitId,
      path,
      sealed: key.seal(content, context(teamId, unitId, path)),
    })),
  )
}

/** Copies the boot files of a unit: they are encrypted for their own unit, so they are encrypted again. */
export async function copyBootFiles(
  db: Kysely<Database>,
  key: SecretKey,
  { teamId, from, to }: { teamId: string; from: string; to: string },
): Promise<void> {
  const rows = await listBootFiles(db, from)
  await insertBootFiles(
    db,
    rows.map(({ path, sealed }) => ({
      unit_id: to,
      path,
      sealed: key.seal(key.open(sealed, context(teamId, from, path)), context(teamId, to, path)),
    })),
  )
}

export async function openBootFiles(
  app: App,
  unit: UnitRecord,
): Promise<{ path: string; content: Buffer }[]> {
  if (unit.spec.files.length === 0) return []
  const rows = await listBootFiles(app.db, unit.id)
  return rows.map(({ path, sealed }) => ({
    path,
    content: app.secretKey.open(sealed, context(unit.teamId, unit.id, path)),
  }))
}

function context(teamId: string, unitId: string, path: string): string[] {
  return ['boot file', teamId, unitId, path]
}
