// A unit keeps the program that started its run for the whole of the run, also when the machine gets another one under the same
// path: each program that is used is linked, or copied, into a directory of ours, with what its probe has shown.

import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { copyFile, link, mkdir, open, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { writeDurably } from '../../../lib/write-durably.ts'

export type Kept = { program: string; path: string }

/** Where newer releases have their side programs. */
const SIDE_PROGRAMS = 'gvisor-bin'
const SHOWN = 'shown.json'
/** The file that it was kept from last: one that is the same is not read again to name it. */
const SOURCE = 'source'

/** `directory`: of all of them. Returns where it is kept; throws if there is no such program. */
export async function keepProgram(directory: string, source: string): Promise<Kept> {
  const { size, mtimeMs, ino, dev } = await stat(source)
  const of = [source, size, mtimeMs, ino, dev].join(' ')
  const path = (program: string) => join(directory, program, 'runsc')
  const before = await keptFrom(directory, of)
  if (before !== null && existsSync(path(before))) return { program: before, path: path(before) }
  const side = join(dirname(source), SIDE_PROGRAMS)
  const names = await readdir(side).catch((): string[] => [])
  const files = new Map([
    ['runsc', source],
    ...names.toSorted().map((name) => [join(SIDE_PROGRAMS, name), join(side, name)] as const),
  ])
  const program = await keepFiles(directory, files)
  await writeDurably(join(directory, program, SOURCE), of, 0o600)
  return { program, path: path(program) }
}

/** By their names there. Returns the name of the directory that has them: that of their contents, wherever they come from. */
export async function keepFiles(directory: string, files: Map<string, string>): Promise<string> {
  const hash = createHash('sha256')
  for (const [name, file] of files) {
    hash.update(`${name}\0${(await stat(file)).size}\0`)
    await pipeline(createReadStream(file), async (parts) => {
      for await (const part of parts) hash.update(part as Buffer)
    })
  }
  const id = hash.digest('hex').slice(0, 12)
  const home = join(directory, id)
  if ([...files.keys()].every((name) => existsSync(join(home, name)))) return id
  for (const left of [home, `${home}.new`]) await rm(left, { recursive: true, force: true })
  for (const [name, file] of files) {
    await mkdir(dirname(join(`${home}.new`, name)), { recursive: true, mode: 0o700 })
    await linkOrCopy(file, join(`${home}.new`, name))
  }
  await rename(`${home}.new`, home)
  return id
}

async function keptFrom(directory: string, source: string): Promise<string | null> {
  for (const name of await readdir(directory).catch((): string[] => []))
    if ((await readFile(join(directory, name, SOURCE), 'utf8').catch(() => null)) === source) return name
  return null
}

/** What its last probe has shown, for the runs that it has started; null if that is not known. */
export async function shownOf(directory: string, program: string): Promise<unknown> {
  const text = await readFile(join(directory, program, SHOWN), 'utf8').catch(() => null)
  return text === null ? null : (JSON.parse(text) as unknown)
}

export async function noteShown({ path }: Kept, shown: unknown): Promise<void> {
  await writeDurably(join(dirname(path), SHOWN), JSON.stringify(shown), 0o600)
}

/** Removes those that nothing needs any more. */
export async function forgetPrograms(directory: string, needed: Set<string>): Promise<void> {
  for (const name of await readdir(directory).catch((): string[] => []))
    if (!needed.has(name)) await rm(join(directory, name), { recursive: true, force: true })
}

/** A link is the same file, so its pages are in memory once; another file system needs a copy. */
async function linkOrCopy(named: string, to: string): Promise<void> {
  // What a symbolic link leads to is kept.
  const from = await realpath(named)
  await link(from, to).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EXDEV' && error.code !== 'EPERM') throw error
    await copyFile(from, to)
    // A copy that is cut short by a power failure would have the name of a whole one.
    const copy = await open(to, 'r+')
    try {
      await copy.sync()
    } finally {
      await copy.close()
    }
  })
}
