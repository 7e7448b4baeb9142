// `berth cp`: a file into a unit, or out of it. A file of this computer is there whole, or not at all.

import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { UsageError } from '../args.ts'
import { type Context, unitOf } from '../context.ts'
import { Failure } from '../failure.ts'
import { printJson, write } from '../output.ts'

const MAX_BYTES = 1_048_576

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
  const content = from === '-' ? await allOf(process.stdin) : await readLocal(from)
  if (content.length > MAX_BYTES)
    throw new Failure(`${from === '-' ? 'Standard input' : from} is longer than 1 MB.`, {
      hint: `split -b 1m ${from}`,
    })
  const unit = await unitOf(context, to.unit)
  const path = to.path.endsWith('/') ? `${to.path}${basename(from)}` : to.path
  const written = await unit.files.write(path, content, { signal: context.signal })
  if (context.isJson) await printJson(written)
}

async function copyOut(context: Context, from: { unit: string; path: string }, to: string): Promise<void> {
  const unit = await unitOf(context, from.unit)
  const content = await unit.files.read(from.path, { signal: context.signal })
  if (to === '-') return await write(content)
  const isDirectory = await stat(to).then(
    (found) => found.isDirectory(),
    () => false,
  )
  const path = isDirectory ? join(to, basename(from.path)) : to
  await writeWhole(path, content)
  if (context.isJson) await printJson({ path, bytes: content.length })
}

/** `UNIT:/path`; a file whose name has a colon is meant by ./name:x. */
function placeOf(word: string): Place {
  const [, unit, path] = /^([^:/.][^:]*):(\/.*)$/.exec(word) ?? []
  return unit === undefined || path === undefined ? { path: word } : { unit, path }
}

async function readLocal(path: string): Promise<Uint8Array> {
  const { size } = await stat(path).catch((error: unknown) => refuse(path, error))
  return size > MAX_BYTES
    ? new Uint8Array(MAX_BYTES + 1)
    : await readFile(path).catch((error: unknown) => refuse(path, error))
}

async function writeWhole(path: string, content: Uint8Array): Promise<void> {
  const draft = join(dirname(path), `.${basename(path)}.${process.pid}`)
  try {
    await writeFile(draft, content, { flag: 'wx' })
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
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

async function allOf(stream: NodeJS.ReadableStream): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    if ((bytes += chunk.length) > MAX_BYTES) break
  }
  return Buffer.concat(chunks)
}
