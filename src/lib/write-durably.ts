// Files that are replaced while others read them.

import { open, rename } from 'node:fs/promises'

/** Whole or not at all, also when the power goes. */
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
