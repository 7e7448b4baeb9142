// A unit keeps the program that started its run for the whole of the run, also when the machine gets another one under the same
// path: each program that is used is linked, or copied, into a directory of ours, with what its probe has shown.

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, link, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export type Kept = { program: string; path: string }

/** Where newer releases have their side programs. */
const SIDE_PROGRAMS = 'gvisor-bin'
const SHOWN = 'shown.json'

/** `directory`: of all of them. Returns where it is kept; throws if there is no such program. */
export async function keepProgram(directory: string, source: string): Promise<Kept> {
  const { size, mtimeMs, ino, dev } = await stat(source)
  const id = createHash('sha256')
    .update([source, size, mtimeMs, ino, dev].join(' '))
    .digest('hex')
    .slice(0, 12)
  const home = join(directory, id)
  const kept = { program: id, path: join(home, 'runsc') }
  if (existsSync(kept.path)) return kept
  await rm(`${home}.new`, { recursive: true, force: true })
  await mkdir(`${home}.new`, { recursive: true, mode: 0o700 })
  await linkOrCopy(source, join(`${home}.new`, 'runsc'))
  const side = join(dirname(source), SIDE_PROGRAMS)
  for (const name of await readdir(side).catch((): string[] => [])) {
    await mkdir(join(`${home}.new`, SIDE_PROGRAMS), { recursive: true })
    await linkOrCopy(join(side, name), join(`${home}.new`, SIDE_PROGRAMS, name))
  }
  await rm(home, { recursive: true, force: true })
  await rename(`${home}.new`, home)
  return kept
}

/** What its last probe has shown, for the runs that it has started; null if that is not known. */
export async function shownOf(directory: string, program: string): Promise<unknown> {
  const text = await readFile(join(directory, program, SHOWN), 'utf8').catch(() => null)
  return text === null ? null : (JSON.parse(text) as unknown)
}

export async function noteShown({ path }: Kept, shown: unknown): Promise<void> {
  const file = join(dirname(path), SHOWN)
  await writeFile(`${file}.new`, JSON.stringify(shown), { mode: 0o600 })
  await rename(`${file}.new`, file)
}

/** Removes those that nothing needs any more. */
export async function forgetPrograms(directory: string, needed: Set<string>): Promise<void> {
  for (const name of await readdir(directory).catch((): string[] => []))
    if (!needed.has(name)) await rm(join(directory, name), { recursive: true, force: true })
}

/** A link is the same file, so its pages are in memory once; another file system needs a copy. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EXDEV' && error.code !== 'EPERM') throw error
    await copyFile(from, to)
  })
}
