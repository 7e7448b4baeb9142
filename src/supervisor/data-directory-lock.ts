// Allows one supervisor per data directory.

import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { lockFile } from '../lib/file-lock.ts'

/** Holds the lock until the returned handle is closed. Throws a sentence if another process has it. */
export async function lockDataDirectory(dataDir: string): Promise<FileHandle> {
  const locked = await lockFile(join(dataDir, 'supervisor.lock'))
  if ('file' in locked) return locked.file
  throw new Error(
    `Berth already runs on ${dataDir} (process ${locked.owner}): stop that one, or set BERTH_DATA_DIR to another directory.`,
  )
}
