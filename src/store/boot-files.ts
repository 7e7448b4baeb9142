// Contents of boot files, encrypted by the caller, since people put credentials into them.

import type { Kysely } from 'kysely'
import type { Database } from './schema.ts'
import type { BootFilesTable } from './tables/boot-files.ts'

export async function insertBootFiles(db: Kysely<Database>, files: BootFilesTable[]): Promise<void> {
  if (files.length > 0) await db.insertInto('boot_files').values(files).execute()
}

export async function listBootFiles(db: Kysely<Database>, unitId: string): Promise<BootFilesTable[]> {
  return await db.selectFrom('boot_files').selectAll().where('unit_id', '=', unitId).orderBy('path').execute()
}
