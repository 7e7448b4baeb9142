// One supervisor for a data directory. The lock is the kernel's (flock), so it is gone with the process that
// holds it, however that ends.

import { open, type FileHandle } from 'node:fs/promises'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** Holds the lock until the answered handle is closed. Throws a sentence when another process has it. */
export async function lockDataDirectory(dataDir: string): Promise<FileHandle> {
  const file = await open(join(dataDir, 'supervisor.lock'), 'a+', 0o600)
  // flock(1) locks the open file that it shares with us through descriptor 3: the lock stays when it ends.
  const child = spawn('flock', ['--nonblock', '3'], { stdio: ['ignore', 'ignore', 'ignore', file.fd] })
  const [code] = await once(child, 'exit')
  if (code === 0) {
    await file.truncate(0)
    await file.write(String(process.pid))
    return file
  }
  const owner = (await file.readFile('utf8')).trim()
  await file.close()
  throw new Error(
    `Berth already runs on ${dataDir} (process ${owner || 'unknown'}): stop that one, or set BERTH_DATA_DIR to another directory.`,
  )
}
