// `berth cp`: copies a file into or out of a unit. The target appears complete or not at all: both sides write a
// draft beside it first. Files above 1 MB are streamed as an archive.

import { createWriteStream, openAsBlob } from 'node:fs'
import { mkdtemp, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, posix } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { isBerthError, type Unit } from '@berth/sdk'
import { UsageError } from '../args.ts'
import { type Context, unitOf } from '../context.ts'
import { Failure } from '../failure.ts'
import { printJson, progress, write } from '../output.ts'
import { fileIn, headerOf, trailerOf } from '../tar.ts'

const MAX_BYTES = 1_048_576
/** As long as the service takes for an archive. */
const ARCHIVE_MS = 600_000

type Place = { unit: string; path: string } | { path: string }

export async function cp(context: Context): Promise<void> {
  const [from, to] = context.args.args.map(placeOf)
  if (!from || !to || 'unit' in from === 'unit' in to)
    throw new UsageError(
      'One of both is UNIT:/path, the other a file of this computer, or - for standard input and output',
    )
  if ('unit' in to) await copyIn(context, from.path, to)
  else if ('unit' in from) await copyOut(context, from, to.path)
}

async function copyIn(context: Context, from: string, to: { unit: string; path: string }): Promise<void> {
  if (from !== '-') return await sendFile(context, from, from, to)
  const directory = await mkdtemp(join(tmpdir(), 'berth-cp-'))
  try {
    // How long it is has to be known before it is sent.
    const draft = join(directory, 'stdin')
    await pipeline(process.stdin, createWriteStream(draft, { mode: 0o600 }), { signal: context.signal })
    await sendFile(context, draft, from, to)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function sendFile(
  context: Context,
  file: string,
  name: string,
  to: { unit: string; path: string },
): Promise<void> {
  const { signal } = context
  const found = await stat(file).catch((error: unknown) => refuse(name, error))
  if (!found.isFile()) throw new Failure(`${name} is no regular file.`, { hint: 'berth cp --help' })
  const content = await openAsBlob(file).catch((error: unknown) => refuse(name, error))
  const unit = await unitOf(context, to.unit)
  const path = to.path.endsWith('/') ? `${to.path}${basename(name)}` : to.path
  if (content.size > MAX_BYTES) await sendArchive(unit, path, content, signal)
  else {
    const bytes = await content.arrayBuffer().catch((error: unknown) => refuse(name, error))
    await unit.files.write(path, new Uint8Array(bytes), { signal })
  }
  if (context.isJson) await printJson({ path, bytes: content.size })
}

async function sendArchive(unit: Unit, path: string, content: Blob, signal: AbortSignal): Promise<void> {
  const directory = posix.dirname(path)
  const draft = posix.join(directory, `.berth-cp-${crypto.randomUUID()}`)
  const archive = new Blob([headerOf('content', content.size), content, trailerOf(content.size)])
  const shown = progress(`to ${unit.name}`, archive.size)
  try {
    await unit.files.unpack(draft, watched(archive, shown.add), { signal, timeoutMs: ARCHIVE_MS })
    const moved = await unit.exec(['mv', '-f', '-T', '--', `${draft}/content`, path], { signal })
    if (moved.exitCode !== 0) throw new Failure(`${path} cannot be written: ${saidBy(moved.stderr)}.`)
  } finally {
    shown.end()
    await unit.files.delete(draft, { recursive: true }).catch((error: unknown) => {
      if (!isBerthError(error)) throw error
    })
  }
}

const saidBy = (stderr: string) => stderr.trim().split('\n').at(-1) || 'the image has no mv'

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

async function copyOut(context: Context, from: { unit: string; path: string }, to: string): Promise<void> {
  const unit = await unitOf(context, from.unit)
  const { bytes, content } = await contentOf(unit, from.path, context.signal)
  if (to === '-') {
    for await (const piece of content) await write(piece)
    return
  }
  const isDirectory = await stat(to).then(
    (found) => found.isDirectory(),
    () => false,
  )
  const path = isDirectory ? join(to, basename(from.path)) : to
  await writeWhole(path, content, context.signal)
  if (context.isJson) await printJson({ path, bytes })
}

type Content = { bytes: number; content: AsyncIterable<Uint8Array> }

async function contentOf(unit: Unit, path: string, signal: AbortSignal): Promise<Content> {
  const small = await unit.files.read(path, { signal }).catch((error: unknown) => {
    // It is no file, or too long to be read at once.
    if (isBerthError(error, 'validation')) return null
    throw error
  })
  if (small) return { bytes: small.length, content: oneOf(small) }
  const archive = await unit.files.archive(path, { signal })
  const file = await fileIn(archive, basename(path))
  if (file) return { bytes: file.bytes, content: watchedPieces(unit.name, file) }
  await archive.cancel().catch(() => {})
  throw new Failure(`${unit.name}:${path} is no regular file.`, {
    hint: `berth exec ${unit.name} -- ls -l ${path}`,
  })
}

async function* oneOf(piece: Uint8Array): AsyncGenerator<Uint8Array> {
  yield piece
}

async function* watchedPieces(name: string, { bytes, content }: Content): AsyncGenerator<Uint8Array> {
  const shown = progress(`from ${name}`, bytes)
  try {
    for await (const piece of content) {
      shown.add(piece.length)
      yield piece
    }
  } finally {
    shown.end()
  }
}

/** `UNIT:/path`; a file whose name has a colon is meant by ./name:x. */
function placeOf(word: string): Place {
  const [, unit, path] = /^([^:/.][^:]*):(\/.*)$/.exec(word) ?? []
  return unit === undefined || path === undefined ? { path: word } : { unit, path }
}

async function writeWhole(
  path: string,
  content: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const draft = join(dirname(path), `.${basename(path)}.${process.pid}`)
  try {
    await pipeline(content, createWriteStream(draft, { flags: 'wx' }), { signal })
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    if (isBerthError(error) || signal.aborted) throw error
    refuse(path, error)
  }
}

function refuse(path: string, error: unknown): never {
  const { code, message } = error as NodeJS.ErrnoException
  const why: Record<string, string> = {
    ENOENT: 'is not there',
    EACCES: 'may not be used',
    EISDIR: 'is a directory',
  }
  throw new Failure(`${path} ${why[code ?? ''] ?? `cannot be used: ${message}`}.`, {
    hint: 'berth cp --help',
  })
}
