// Replaces files while other processes read them.

import { open, rename } from 'node:fs/promises'

/** Writes the file completely or not at all, even if the power fails. */
export async function writeDurably(path: string, content: string, mode = 0o644): Promise<void> {
  const temporary = `${path}.new`
  const file = await open(temporary, 'w', mode)
  try {
    await file.chmod(mode)
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, path)
}
