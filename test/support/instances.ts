// The data directories and network namespaces that the tests of a run have made and not removed yet, as files in a directory
// that the run's global setup makes (clear-host.ts). What a failed test leaves on the host is found by them.

import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'

/** Where the notes lie, for every process of the run. */
export const NOTES_VARIABLE = 'BERTH_TEST_INSTANCES'

/** Where what every new data directory begins with lies (prepared-data.ts). */
export const PREPARED_VARIABLE = 'BERTH_TEST_PREPARED'

const NAMESPACE = 'namespace-'

export async function noteDataDir(dataDir: string): Promise<void> {
  await note(basename(dataDir), dataDir)
}

export async function forgetDataDir(dataDir: string): Promise<void> {
  await forget(basename(dataDir))
}

export async function noteNamespace(name: string): Promise<void> {
  await note(`${NAMESPACE}${name}`, name)
}

export async function forgetNamespace(name: string): Promise<void> {
  await forget(`${NAMESPACE}${name}`)
}

/** What was noted and not forgotten. */
export async function notedIn(notes: string): Promise<{ dataDirs: string[]; namespaces: string[] }> {
  const names = await readdir(notes)
  const read = async (some: string[]) =>
    await Promise.all(some.map((name) => readFile(join(notes, name), 'utf8')))
  return {
    dataDirs: await read(names.filter((name) => !name.startsWith(NAMESPACE))),
    namespaces: await read(names.filter((name) => name.startsWith(NAMESPACE))),
  }
}

async function note(file: string, text: string): Promise<void> {
  const notes = process.env[NOTES_VARIABLE]
  if (notes !== undefined) await writeFile(join(notes, file), text)
}

async function forget(file: string): Promise<void> {
  const notes = process.env[NOTES_VARIABLE]
  if (notes !== undefined) await rm(join(notes, file), { force: true })
}
