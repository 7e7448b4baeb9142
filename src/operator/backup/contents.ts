// What is in a backup, beside the disks and the database.

import { z } from 'zod'

export const BACKUP_FILE = 'backup.json'

export const backupSchema = z.object({
  version: z.literal(1),
  at: z.iso.datetime(),
  instanceId: z.string(),
  /** False where DATABASE_URL names one of the operator's own. */
  hasDatabase: z.boolean(),
})
export type Backup = z.infer<typeof backupSchema>

/** Of the data directory: files, and directories with all that is in them. What is missing is left out. */
export const keptFiles = ['credentials.json', 'roles/server/secret.key', 'ca', 'acme'] as const
