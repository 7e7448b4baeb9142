// Files and trees of the images directory.

import { randomUUID } from 'node:crypto'
import { rename, writeFile } from 'node:fs/promises'
import { runOrThrow } from '../kernel/programs.ts'

const REMOVE_TIMEOUT_MS = 300_000

/** With `rm`, which uses directory handles: it handles trees too deep for a path, and follows no link. */
export async function removeTree(path: string): Promise<void> {
  await runOrThrow('rm', ['-rf', '--one-file-system', '--', path], { timeoutMs: REMOVE_TIMEOUT_MS })
}

/** Writes a small file so that readers see the old or the new one, never a part. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.${randomUUID()}`
  await writeFile(temporary, text, { mode: 0o600, flush: true })
  await rename(temporary, path)
}
