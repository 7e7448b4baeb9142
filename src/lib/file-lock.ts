// A lock that a file stands for. It is the kernel's (flock), so it is gone with the process that holds it, however
// that ends.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, type FileHandle } from 'node:fs/promises'

export type Locked = { file: FileHandle } | { owner: string }

/** Holds the lock until the answered handle is closed; else whoever has it, as `name` that one gave. */
export async function lockFile(path: string, name = String(process.pid)): Promise<Locked> {
  const file = await open(path, 'a+', 0o600)
  // flock(1) locks the open file that it shares with us through descriptor 3: the lock stays when it ends.
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
