// GET and POST /files: files as bytes, also several at once. They pass through as fast as both ends take them.

import { posix } from 'node:path'
import { createGunzip } from 'node:zlib'
import { validation } from '../../../contract/errors.ts'
import { hasBody } from '../../http/body.ts'
import { isByteStream, sendByteStream } from '../../http/byte-stream.ts'
import { unsupportedMediaType } from '../../http/errors.ts'
import { sendJson } from '../../http/response.ts'
import { bounded } from '../bounded.ts'
import { runOperation, runStreamed } from '../run.ts'
import { checkUser, checkRuns, type SandboxCall } from '../sandbox-call.ts'
import { type FileMetadata, saidOfFiles, setFileMetadata } from './file-metadata.ts'
import { type Part, partsOf } from './multipart.ts'
import { resolvePath, type SandboxUser, type SandboxUsers } from './users.ts'

export async function serveFiles(
  call: SandboxCall,
  users: SandboxUsers,
  query: URLSearchParams,
): Promise<void> {
  await checkRuns(call)
  const named = query.get('username')
  const user = await users.of(call, named === null || named === '' ? call.user : checkUser(named))
  const path = query.get('path')
  if (call.request.method === 'GET') await sendFile(call, pathOf(path, user))
  else sendJson(call.response, 200, await receiveFiles(call, path, user))
}

function pathOf(path: string | null, user: SandboxUser): string {
  if (path === null || path === '') throw validation([{ path: 'path', message: 'is required' }])
  return resolvePath(path, user)
}

async function sendFile(call: SandboxCall, path: string): Promise<void> {
  const { operations, sender, unitId, signal, response } = call
  const input = { params: { id: unitId }, query: { path } }
  const asked = { route: 'GET /v1/units/{id}/files/content', input, signal }
  await runStreamed(operations, sender, asked, async (stream) => {
    if (!isByteStream(stream)) throw new TypeError('a file is answered as bytes')
    await sendByteStream(response, stream, signal)
  })
}

/** Files of a form that are written at once, and the largest that waits in memory for that. */
const AT_ONCE = 8
const SMALL_BYTES = 64 * 1024

type Written = { name: string; type: 'file'; path: string; metadata?: FileMetadata }

/** Each file is an operation of its own; of small ones several go on at once. */
async function receiveFiles(call: SandboxCall, path: string | null, user: SandboxUser): Promise<Written[]> {
  saidOfFiles(call)
  const type = (call.request.headers['content-type'] ?? '').toLowerCase()
  if (type.startsWith('application/octet-stream') || call.request.method === 'PUT')
    return await noted(call, [await receiveFile(call, pathOf(path, user), user, bodyOf(call))])
  if (!type.startsWith('multipart/form-data') || !hasBody(call.request))
    throw unsupportedMediaType('Send the files as multipart/form-data, or one as application/octet-stream.')
  const written: Promise<Written>[] = []
  const open = new Map<string, Promise<unknown>>()
  const write = async ({ filename, pieces }: Part): Promise<void> => {
    // The path of the query is that of a single file.
    const named = path === null || path === '' ? filename : path
    const to = pathOf(named, user)
    const { isWhole, data } = await readAhead(bounded(pieces))
    await open.get(to)
    if (open.size >= AT_ONCE) await Promise.race(open.values())
    const writing = receiveFile(call, to, user, data)
    written.push(writing)
    const ended = writing.finally(() => open.delete(to))
    // A failure is that of the next file, or of all of them below.
    ended.catch(() => {})
    open.set(to, ended)
    if (!isWhole) await writing
  }
  try {
    await partsOf(call.request, write)
  } finally {
    await Promise.allSettled(written)
  }
  if (written.length === 0) throw validation([{ path: 'file', message: 'send at least one file' }])
  return await noted(call, await Promise.all(written))
}

/** Returns a small file whole, so that the next part of the form can be read. */
async function readAhead(
  pieces: AsyncGenerator<Buffer>,
): Promise<{ isWhole: boolean; data: AsyncIterable<Buffer> }> {
  const ahead: Buffer[] = []
  for (let bytes = 0; bytes <= SMALL_BYTES; ) {
    const { done, value } = await pieces.next()
    if (done === true) return { isWhole: true, data: joined(ahead, pieces) }
    ahead.push(value)
    bytes += value.length
  }
  return { isWhole: false, data: joined(ahead, pieces) }
}

async function* joined(ahead: Buffer[], pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield* ahead
  yield* pieces
}

/** Keeps what is said of the files. */
async function noted(call: SandboxCall, written: Written[]): Promise<Written[]> {
  const metadata = saidOfFiles(call)
  const paths = written.map(({ path }) => path)
  await setFileMetadata(call, paths, metadata)
  return metadata === null ? written : written.map((each) => ({ ...each, metadata }))
}

async function receiveFile(
  call: SandboxCall,
  path: string,
  user: SandboxUser,
  pieces: AsyncIterable<Buffer>,
): Promise<Written> {
  const { operations, sender, unitId, signal } = call
  await runOperation(operations, sender, {
    route: 'PUT /v1/units/{id}/files/content',
    input: { params: { id: unitId }, query: { path, user: user.name } },
    bodyPieces: () => pieces,
    signal,
  })
  return { name: posix.basename(path), type: 'file', path }
}

function bodyOf({ request }: SandboxCall): AsyncIterable<Buffer> {
  const encoding = request.headers['content-encoding'] ?? 'identity'
  if (encoding === 'identity') return bounded(request)
  if (encoding !== 'gzip')
    throw unsupportedMediaType('Send the body without a content-encoding, or with gzip.')
  const unpacked = createGunzip()
  request.once('error', (error) => unpacked.destroy(error))
  return bounded(request.pipe(unpacked))
}
