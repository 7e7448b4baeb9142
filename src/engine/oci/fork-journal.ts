// Machines that are copied together are there together or not at all, also after a crash: which ones belong
// together is written down before the first of them has a record, until the last one has.

import { existsSync } from 'node:fs'
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Paths } from './paths.ts'

export async function noteFork(paths: Paths, ids: string[]): Promise<void> {
  const path = noteOf(paths, ids)
  await writeFile(`${path}.new`, JSON.stringify(ids), { mode: 0o600, flush: true })
  await rename(`${path}.new`, path)
}

export async function forgetFork(paths: Paths, ids: string[]): Promise<void> {
  await rm(noteOf(paths, ids), { force: true })
}

/**
 * Takes the records of copies whose siblings have none: a machine without a record is one that was never made to
 * its end. Where all have theirs only the note was left, and they stay: it may come back when the power goes.
 */
export async function revokeTornForks(paths: Paths): Promise<void> {
  for (const name of await readdir(paths.forks)) {
    const path = join(paths.forks, name)
    // A note that was not finished was none: no record had been written by then.
    const ids = name.endsWith('.new') ? [] : (JSON.parse(await readFile(path, 'utf8')) as string[])
    const records = ids.map((id) => paths.machine(id).record)
    if (!records.every((record) => existsSync(record))) {
      for (const record of records) await rm(record, { force: true })
    }
    await rm(path, { force: true })
  }
}

function noteOf(paths: Paths, ids: string[]): string {
  return join(paths.forks, `${ids[0] ?? 'nobody'}.json`)
}
