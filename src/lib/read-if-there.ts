// Files that need not be there. Only that is not an error: whoever takes a file that cannot be read for none at all
// goes on to make another one in its place.

import { readFile } from 'node:fs/promises'

/** Null where there is none. */
export async function readIfThere(path: string): Promise<string | null> {
  const bytes = await readBytesIfThere(path)
  return bytes && bytes.toString('utf8')
}

/** Null where there is none. */
export async function readBytesIfThere(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}
