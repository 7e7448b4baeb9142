// Machines that are copied together are there together or not at all, also after a crash: which ones belong
// together is written down before the first of them has a record, until the last one has.

import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Paths } from '../paths.ts'
import type { MachineRecord } from '../lifecycle/record.ts'

export async function recordFork(paths: Paths, ids: string[]): Promise<void> {
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
export async function rollBackIncompleteForks(paths: Paths): Promise<void> {
  for (const name of await readdir(paths.forks)) {
    const path = join(paths.forks, name)
    // A note that was not finished was none: no record had been written by then.
    const ids = name.endsWith('.new') ? [] : (JSON.parse(await readFile(path, 'utf8')) as string[])
    const runs = await Promise.all(ids.map((id) => newestRun(paths, id)))
    // Nobody was told of them, so none has run: a note about one that has is an old one.
    if (runs.includes(null) && runs.every((generation) => !generation)) {
      for (const id of ids) await rm(paths.machine(id).record, { force: true })
    }
    await rm(path, { force: true })
  }
}

/** Null: there is no record of it that can be read. */
async function newestRun(paths: Paths, id: string): Promise<number | null> {
  const text = await readFile(paths.machine(id).record, 'utf8').catch(() => '')
  return text === '' ? null : (JSON.parse(text) as MachineRecord).generation
}

function noteOf(paths: Paths, ids: string[]): string {
  return join(paths.forks, `${ids[0] ?? 'nobody'}.json`)
}
