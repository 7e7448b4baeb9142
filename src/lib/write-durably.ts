// Replaces files while other processes read them.

import { open, rename, rm } from 'node:fs/promises'

/** Writes the file completely or not at all, even if the power fails. It is this process's user's unless `owner` is given. */
export async function writeDurably(
  path: string,
  content: string | Buffer,
  mode = 0o644,
  owner?: { uid: number; gid: number },
): Promise<void> {
  const temporary = `${path}.new`
  // The directory may be the owner's, whose links must not lead root to another file.
  if (owner) await rm(temporary, { force: true })
  const file = await open(temporary, owner ? 'wx' : 'w', mode)
  try {
    await file.chmod(mode)
    if (owner) await file.chown(owner.uid, owner.gid)
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, path)
}
