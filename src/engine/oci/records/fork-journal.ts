// Machines that are copied together exist together or not at all, even after a crash: the list of them is written
// before the first has a record, and removed after the last has one.

import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Paths } from '../paths.ts'
import type { MachineRecord } from './record.ts'

export async function recordFork(paths: Paths, ids: string[]): Promise<void> {
  const path = noteOf(paths, ids)
  await writeFile(`${path}.new`, JSON.stringify(ids), { mode: 0o600, flush: true })
  await rename(`${path}.new`, path)
}

export async function forgetFork(paths: Paths, ids: string[]): Promise<void> {
  await rm(noteOf(paths, ids), { force: true })
}

/**
 * Removes the records of copies whose siblings have none, since a machine without a record was never completed. If
 * all have records, only the note was left, and they stay: a note may reappear after a power loss.
 */
export async function rollBackIncompleteForks(paths: Paths): Promise<void> {
  for (const name of await readdir(paths.forks)) {
    const path = join(paths.forks, name)
    // An incomplete note means that no record had been written yet.
    const ids = name.endsWith('.new') ? [] : (JSON.parse(await readFile(path, 'utf8')) as string[])
    const runs = await Promise.all(ids.map((id) => newestRun(paths, id)))
    // No caller was told of them, so none has run: a note about one that has run is outdated.
    if (runs.includes(null) && runs.every((generation) => !generation)) {
      for (const id of ids) await rm(paths.machine(id).record, { force: true })
    }
    await rm(path, { force: true })
  }
}

/** Returns null if there is no readable record. */
async function newestRun(paths: Paths, id: string): Promise<number | null> {
  const text = await readFile(paths.machine(id).record, 'utf8').catch(() => '')
  return text === '' ? null : (JSON.parse(text) as MachineRecord).generation
}

function noteOf(paths: Paths, ids: string[]): string {
  return join(paths.forks, `${ids[0] ?? 'nobody'}.json`)
}
