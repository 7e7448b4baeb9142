// The way out of a unit. The unit decides what is in its archive: no entry of a folder leads out of the folder here,
// neither by its name nor through a link that is there or that the same archive brings.

import { constants, createReadStream, createWriteStream } from 'node:fs'
import { chmod, lstat, mkdir, rename, rm, stat, symlink } from 'node:fs/promises'
import { basename, dirname, join, posix } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { isBerthError, type Unit } from '@berth/sdk'
import { type Context, unitOf } from './context.ts'
import { Failure } from './failure.ts'
import {
  bytesOf,
  type Copied,
  ifThere,
  latin1,
  nameOf,
  refuse,
  shown,
  type UnitPlace,
} from './local-files.ts'
import { note, progress, write } from './output.ts'
import { entriesIn, type ReadEntry } from './tar.ts'

/** As many as a kernel follows. */
const MAX_LINKS = 40

type Opened = { first: ReadEntry | null; entries: AsyncGenerator<ReadEntry>; end: () => void }

export async function copyOut(context: Context, from: UnitPlace, to: string): Promise<Copied> {
  const { signal } = context
  const unit = await unitOf(context, from.unit)
  const opened = await open(unit, from.path, signal)
  const told = progress(`from ${unit.name}`, opened.first?.type === 'file' ? opened.first.bytes : null)
  try {
    if (to === '-') return await print(opened.first, from.path)
    const isFolder = (await ifThere(stat(to)))?.isDirectory() ?? false
    const path = isFolder ? join(to, nameOf(from.path)) : to
    const bytes =
      opened.first?.type === 'file'
        ? await writeFile(path, opened.first, told.add, signal)
        : await writeFolder(latin1(path), opened, told.add)
    return { path, bytes }
  } catch (error) {
    if (isBerthError(error) || error instanceof Failure || signal.aborted) throw error
    return refuse(to, error)
  } finally {
    told.end()
    opened.end()
  }
}

/** Follows a link at the path itself. Only the root has an archive that does not begin with itself. */
async function open(unit: Unit, asked: string, signal: AbortSignal): Promise<Opened> {
  let path = asked.replace(/(?:\/+\.?)+$/, '') || '/'
  for (let links = 0; links < MAX_LINKS; links += 1) {
    const left = new AbortController()
    const archive = await unit.files.archive(path, { signal: AbortSignal.any([signal, left.signal]) })
    const entries = entriesIn(archive)
    const end = () => left.abort()
    if (path === '/') return { first: null, entries, end }
    const { value: first } = await entries.next()
    if (first?.type === 'file' || first?.type === 'directory') return { first, entries, end }
    end()
    if (first?.type !== 'link') break
    path = posix.resolve(posix.dirname(path), shown(first.target))
  }
  throw new Failure(`${unit.name}:${asked} is no file and no folder.`, {
    hint: `berth exec ${unit.name} -- ls -l ${asked}`,
  })
}

async function print(first: ReadEntry | null, path: string): Promise<Copied> {
  if (first?.type !== 'file')
    throw new Failure(`${path} is a folder: it needs a folder of this computer.`, { hint: 'berth cp --help' })
  for await (const piece of first.content) await write(piece)
  return { path: '-', bytes: first.bytes }
}

async function* watched(entry: ReadEntry, tell: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  for await (const piece of entry.content) {
    tell(piece.length)
    yield piece
  }
}

/** What arrived whole becomes the file, or is written into the one that is there. */
async function writeFile(
  path: string,
  file: ReadEntry,
  tell: (bytes: number) => void,
  signal: AbortSignal,
): Promise<number> {
  const draft = join(dirname(path), `.${basename(path)}.${process.pid}`)
  try {
    await pipeline(watched(file, tell), createWriteStream(draft, { flags: 'wx', mode: 0o600 }), { signal })
    const there = await ifThere(lstat(path))
    if (there) {
      const isNew = (await ifThere(stat(path))) === null
      await pipeline(createReadStream(draft), createWriteStream(path))
      if (isNew) await chmod(path, file.mode)
    } else {
      await chmod(draft, file.mode)
      await rename(draft, path)
    }
  } catch (error) {
    if (isBerthError(error) || signal.aborted) throw error
    refuse(path, error)
  } finally {
    await rm(draft, { force: true })
  }
  return file.bytes
}

/** Links and modes of folders come last: until then every folder can be written, and none is a link. */
async function writeFolder(
  root: string,
  { first, entries }: Opened,
  tell: (bytes: number) => void,
): Promise<number> {
  const folders = new Map<string, number | null>()
  const links: { path: string; target: string }[] = []
  let bytes = 0
  await makeFolder(root, folders, first?.mode ?? 0o755)
  for await (const entry of entries) {
    const parts = entry.name.split('/').filter((part) => part !== '' && part !== '.')
    if (parts.includes('..'))
      throw new Failure(`The unit names a file outside of the folder: ${shown(entry.name)}`)
    const path = [root, ...parts].join('/')
    for (let depth = 1; depth < parts.length; depth += 1)
      await makeFolder([root, ...parts.slice(0, depth)].join('/'), folders, 0o755)
    if (entry.type === 'directory') await makeFolder(path, folders, entry.mode)
    else if (entry.type === 'link') links.push({ path, target: entry.target })
    else if (entry.type === 'file') bytes += await writeBelow(path, entry.mode, watched(entry, tell))
    else if (entry.type === 'hard link')
      await writeBelow(path, entry.mode, earlier(root, entry.target, folders))
    else note(`left out: ${shown(path)} is no file, folder or link`)
  }
  for (const { path, target } of links) {
    if ((await ifThere(lstat(bytesOf(path))))?.isDirectory()) refuse(shown(path), { code: 'EISDIR' })
    await rm(bytesOf(path), { force: true })
    await symlink(bytesOf(target), bytesOf(path))
  }
  for (const [path, mode] of [...folders].toReversed()) if (mode !== null) await chmod(bytesOf(path), mode)
  return bytes
}

/** `folders` has the modes of those that are new, null for the others. */
async function makeFolder(path: string, folders: Map<string, number | null>, mode: number): Promise<void> {
  if (folders.has(path)) return
  // The folder that was named on the command line may be a link to one.
  const there = await ifThere(folders.size === 0 ? stat(bytesOf(path)) : lstat(bytesOf(path)))
  if (there?.isDirectory()) return void folders.set(path, null)
  if (there) notFollowed(path)
  await mkdir(bytesOf(path), { mode: 0o700 })
  folders.set(path, mode)
}

async function writeBelow(path: string, mode: number, content: AsyncIterable<Uint8Array>): Promise<number> {
  const there = await ifThere(lstat(bytesOf(path)))
  if (there && !there.isFile()) notFollowed(path)
  const { O_WRONLY, O_CREAT, O_EXCL, O_TRUNC, O_NOFOLLOW } = constants
  const flags = O_WRONLY | (there ? O_TRUNC | (O_NOFOLLOW ?? 0) : O_CREAT | O_EXCL)
  const stream = createWriteStream(bytesOf(path), { flags: flags as never, mode: 0o600 })
  await pipeline(content, stream)
  if (!there) await chmod(bytesOf(path), mode)
  return stream.bytesWritten
}

/** The content of a file of the same archive. */
function earlier(root: string, name: string, folders: Map<string, number | null>): AsyncIterable<Uint8Array> {
  const path = [root, ...name.split('/').filter((part) => part !== '' && part !== '.')].join('/')
  if (name.split('/').includes('..') || !folders.has(posix.dirname(path))) notFollowed(path)
  const { O_RDONLY, O_NOFOLLOW } = constants
  return createReadStream(bytesOf(path), { flags: (O_RDONLY | (O_NOFOLLOW ?? 0)) as never })
}

function notFollowed(path: string): never {
  throw new Failure(
    `${shown(path)} is something else here: a unit writes through no link, and replaces no folder.`,
    {
      hint: 'another folder, or remove it first',
    },
  )
}
