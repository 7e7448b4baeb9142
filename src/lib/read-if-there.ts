// Reads files that need not exist. Every other error is thrown: a caller that took an unreadable file for a missing
// one would create another in its place.

import { readFile } from 'node:fs/promises'
import { errorCodeOf } from './error-code.ts'

/** Returns null if the file does not exist. */
export async function readIfThere(path: string): Promise<string | null> {
  const bytes = await readBytesIfThere(path)
  return bytes && bytes.toString('utf8')
}

/** Returns null if the file does not exist. */
export async function readBytesIfThere(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path)
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return null
    throw error
  }
}
