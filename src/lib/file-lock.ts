// A lock on a file with flock(2). The kernel releases it when the process that holds it ends, for whatever reason.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, type FileHandle } from 'node:fs/promises'

export type Locked = { file: FileHandle } | { owner: string }

/**
 * Returns a handle that holds the lock until it is closed; if another process has the lock, returns that process's
 * `name`.
 */
export async function lockFile(path: string, name = String(process.pid)): Promise<Locked> {
  const file = await open(path, 'a+', 0o600)
  // flock(1) locks the open file that it inherits as descriptor 3: the lock remains after flock(1) ends.
  const child = spawn('flock', ['--nonblock', '3'], { stdio: ['ignore', 'ignore', 'ignore', file.fd] })
  const [code] = await once(child, 'exit')
  if (code === 0) {
    await file.truncate(0)
    await file.write(name)
    return { file }
  }
  const owner = (await file.readFile('utf8')).trim()
  await file.close()
  return { owner: owner || 'unknown' }
}
