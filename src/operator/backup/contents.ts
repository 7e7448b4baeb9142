// What a backup contains besides the disks and the database.

import { z } from 'zod'

export const BACKUP_FILE = 'backup.json'

export const backupSchema = z.object({
  version: z.literal(1),
  at: z.iso.datetime(),
  instanceId: z.string(),
  /** False if DATABASE_URL names a database of the operator's. */
  hasDatabase: z.boolean(),
})
export type Backup = z.infer<typeof backupSchema>

/** Files and whole directories of the data directory. Missing ones are skipped. */
export const keptFiles = ['credentials.json', 'roles/server/secret.key', 'ca', 'acme', 'fleet'] as const
