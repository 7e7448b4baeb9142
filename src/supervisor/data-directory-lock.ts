// Allows one supervisor per data directory.

import { join } from 'node:path'
import { type FileLock, lockFile } from '../lib/file-lock.ts'

/** Throws a sentence if another process has it. */
export async function lockDataDirectory(dataDir: string): Promise<FileLock> {
  const lock = await lockFile(join(dataDir, 'supervisor.lock'))
  if (!('owner' in lock)) return lock
  throw new Error(
    `Berth already runs on ${dataDir} (process ${lock.owner}): stop that one, or set BERTH_DATA_DIR to another directory.`,
  )
}
