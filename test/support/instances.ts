// The data directories that the tests of a run have made and not removed yet, as files in a directory that the run's
// global setup makes (clear-host.ts). What a failed test leaves on the host is found by them.

import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'

/** Where the notes lie, for every process of the run. */
export const NOTES_VARIABLE = 'BERTH_TEST_INSTANCES'

/** Where what every new data directory begins with lies (prepared-data.ts). */
export const PREPARED_VARIABLE = 'BERTH_TEST_PREPARED'

export async function noteDataDir(dataDir: string): Promise<void> {
  const notes = process.env[NOTES_VARIABLE]
  if (notes !== undefined) await writeFile(join(notes, basename(dataDir)), dataDir)
}

export async function forgetDataDir(dataDir: string): Promise<void> {
  const notes = process.env[NOTES_VARIABLE]
  if (notes !== undefined) await rm(join(notes, basename(dataDir)), { force: true })
}

/** Data directories that were noted and not forgotten. */
export async function notedDataDirs(notes: string): Promise<string[]> {
  const names = await readdir(notes)
  return await Promise.all(names.map((name) => readFile(join(notes, name), 'utf8')))
}
