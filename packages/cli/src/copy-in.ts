// The way into a unit: one archive of files and folders, which the unit writes in place, and one of links.

import { createWriteStream, openAsBlob } from 'node:fs'
import { lstat, mkdtemp, readdir, readlink, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { isBerthError, type Unit } from '@berth/sdk'
import { UsageError } from './args.ts'
import { type Context, unitOf } from './context.ts'
import { Failure } from './failure.ts'
import { bytesOf, type Copied, latin1, nameOf, refuse, shown, type UnitPlace } from './local-files.ts'
import { progress } from './output.ts'
import { ending, type Entry, headerOf, paddingOf } from './tar.ts'

/** As long as the service takes for an archive. */
const ARCHIVE_MS = 600_000

/** A file, folder or link of this computer. Its name is that below the source; empty for the source itself. */
type Source = Entry & { path: string }

export async function copyIn(context: Context, from: string, to: UnitPlace): Promise<Copied> {
  if (from !== '-') return await send(context, await sourcesOf(from), nameOf(from), to)
  const directory = await mkdtemp(join(tmpdir(), 'berth-cp-'))
  try {
    // How long it is has to be known before it is sent.
    const draft = join(directory, 'stdin')
    await pipeline(process.stdin, createWriteStream(draft), { signal: context.signal })
    const [source] = await sourcesOf(draft)
    return await send(context, source ? [{ ...source, mode: 0o644 }] : [], null, to)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function sourcesOf(from: string): Promise<Source[]> {
  const path = latin1(from)
  const found = await stat(from).catch((error: unknown) => refuse(from, error))
  const common = { path, name: '', mode: found.mode & 0o777, target: '' }
  if (found.isFile()) return [{ ...common, type: 'file', bytes: found.size }]
  if (!found.isDirectory())
    throw new Failure(`${from} is no file and no folder.`, { hint: 'berth cp --help' })
  return [{ ...common, type: 'directory', bytes: 0 }, ...(await below(path, ''))]
}

async function below(path: string, name: string): Promise<Source[]> {
  const names = await readdir(bytesOf(path), { encoding: 'latin1' }).catch((error: unknown) =>
    refuse(shown(path), error),
  )
  const found: Source[] = []
  for (const each of names.toSorted()) {
    const source = await sourceOf(`${path}/${each}`, name === '' ? each : `${name}/${each}`)
    found.push(source)
    if (source.type === 'directory') found.push(...(await below(source.path, source.name)))
  }
  return found
}

async function sourceOf(path: string, name: string): Promise<Source> {
  const found = await lstat(bytesOf(path)).catch((error: unknown) => refuse(shown(path), error))
  const common = { path, name, mode: found.mode & 0o777, bytes: 0, target: '' }
  if (found.isFile()) return { ...common, type: 'file', bytes: found.size }
  if (found.isDirectory()) return { ...common, type: 'directory' }
  if (found.isSymbolicLink())
    return { ...common, type: 'link', target: await readlink(bytesOf(path), { encoding: 'latin1' }) }
  throw new Failure(`${shown(path)} is no file, folder or link.`, { hint: 'berth cp --help' })
}

/** `name`: null for standard input. */
async function send(
  context: Context,
  sources: Source[],
  name: string | null,
  to: UnitPlace,
): Promise<Copied> {
  const { signal } = context
  const unit = await unitOf(context, to.unit)
  const path = await targetOf(unit, sources, name, to.path, signal)
  const [parent, base] = path === '/' ? ['/', '.'] : [posix.dirname(path), latin1(posix.basename(path))]
  const named = sources.map((each) => ({ ...each, name: each.name === '' ? base : `${base}/${each.name}` }))
  const links = named.filter(({ type }) => type === 'link')
  const files = await archiveOf(named.filter(({ type }) => type !== 'link'))
  const told = progress(`to ${unit.name}`, files.size)
  try {
    await unit.files.unpack(parent, watched(files, told.add), { keep: true, signal, timeoutMs: ARCHIVE_MS })
    // A link replaces what has its name: it cannot be written in place.
    if (links.length > 0)
      await unit.files.unpack(parent, await archiveOf(links), { signal, timeoutMs: ARCHIVE_MS })
  } finally {
    told.end()
  }
  return { path, bytes: sources.reduce((sum, { bytes }) => sum + bytes, 0) }
}

/** Into a folder that is there, or else to the path itself. */
async function targetOf(
  unit: Unit,
  [source]: Source[],
  name: string | null,
  to: string,
  signal: AbortSignal,
): Promise<string> {
  const path = to.replace(/(?:\/+\.?)+$/, '') || '/'
  const isFolder =
    (source?.type === 'file' && to.endsWith('/')) ||
    (await unit.files
      .list(path, { limit: 1, signal })
      .page()
      .then(
        () => true,
        (error: unknown) => {
          if (isBerthError(error, 'not_found') || isBerthError(error, 'validation')) return false
          throw error
        },
      ))
  if (!isFolder) return path
  if (name === null) throw new UsageError(`${to} is a folder: standard input needs the path of a file`)
  return name === '' ? path : posix.join(path, name)
}

async function archiveOf(sources: Source[]): Promise<Blob> {
  const parts: (Uint8Array<ArrayBuffer> | Blob)[] = []
  for (const source of sources) {
    parts.push(Uint8Array.from(headerOf(source)))
    if (source.type !== 'file') continue
    const content = await openAsBlob(bytesOf(source.path)).catch((error: unknown) =>
      refuse(shown(source.path), error),
    )
    if (content.size !== source.bytes) throw new Failure(`${shown(source.path)} is being written.`)
    parts.push(content, Uint8Array.from(paddingOf(source.bytes)))
  }
  return new Blob([...parts, Uint8Array.from(ending())])
}

/** The same bytes, each piece told of as it is read. */
function watched(blob: Blob, tell: (bytes: number) => void): Blob {
  const stream = () =>
    blob.stream().pipeThrough(
      new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
        transform: (piece, out) => {
          tell(piece.length)
          out.enqueue(piece)
        },
      }),
    )
  return Object.defineProperty(blob.slice(), 'stream', { value: stream })
}
