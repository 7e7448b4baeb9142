// What clients say of files when they write them. A sandbox keeps it in a file of its own, since not every class of isolation
// has extended attributes: so copies have it, and what a program in the sandbox moves by itself loses it.

import { z } from 'zod'
import type { App } from '../../../app.ts'
import { validation } from '../../../contract/errors.ts'
import type { FileRead } from '../../../contract/files.ts'
import { createSemaphore, type Semaphore } from '../../../lib/concurrency/semaphore.ts'
import { toAppError } from '../../http/errors.ts'
import { runOperation } from '../run.ts'
import { operate, type SandboxCall } from '../sandbox-call.ts'

export type FileMetadata = Record<string, string>

const KEPT_AT = '/var/lib/file-metadata.json'
const MAX_BYTES = 1024 * 1024
const HEADER = 'x-metadata-'
const MAX_PAIRS = 64
const PRINTABLE = /^[\x20-\x7e]{0,1024}$/

const keptSchema = z.record(z.string(), z.record(z.string(), z.string()))
type Kept = z.output<typeof keptSchema>

/** Above this number of sandboxes, what is known of the one that was asked first is asked again. */
const MAX_KNOWN = 2000

type Known = { hasAny: Map<string, boolean>; writing: Map<string, Semaphore> }
const ofApps = new WeakMap<App, Known>()

function knownOf(app: App): Known {
  const known = ofApps.get(app) ?? { hasAny: new Map(), writing: new Map() }
  ofApps.set(app, known)
  return known
}

/** What a request says of the files in it; null if nothing. Throws `validation`. */
export function saidOfFiles({ request }: Pick<SandboxCall, 'request'>): FileMetadata | null {
  const pairs = Object.entries(request.headers).flatMap(([name, value]) =>
    name.startsWith(HEADER) ? [[name.slice(HEADER.length), String(value)] as const] : [],
  )
  const isOdd = ([name, value]: readonly [string, string]) => name === '' || !PRINTABLE.test(value)
  if (pairs.length > MAX_PAIRS || pairs.some(isOdd))
    throw validation([
      {
        path: 'metadata',
        message: `must be at most ${MAX_PAIRS} pairs of printable ASCII, 1,024 characters each`,
      },
    ])
  return pairs.length === 0 ? null : Object.fromEntries(pairs)
}

/** Of all files, by their paths. */
export async function readFileMetadata(call: SandboxCall): Promise<Kept> {
  const { app, unitId } = call
  if (knownOf(app).hasAny.get(unitId) === false) return {}
  const query = { path: KEPT_AT }
  const file = await operate(call, 'GET /v1/units/{id}/files', { query }).catch((error: unknown) => {
    const { status } = toAppError(error)
    // A program in the sandbox may have put anything there.
    if (status !== 404 && status !== 400 && status !== 413) throw error
    return null
  })
  noteAny(call, file !== null)
  return file === null ? {} : parseKept(Buffer.from((file as FileRead).contentBase64, 'base64'))
}

/** Null: nothing is said of the files any more. */
export async function setFileMetadata(
  call: SandboxCall,
  paths: readonly string[],
  metadata: FileMetadata | null,
): Promise<void> {
  await change(call, metadata !== null, (kept) => {
    const others = Object.entries(kept).filter(([path]) => !paths.includes(path))
    if (metadata !== null) return Object.fromEntries([...others, ...paths.map((path) => [path, metadata])])
    return others.length === Object.keys(kept).length ? null : Object.fromEntries(others)
  })
}

/** Of a file or a directory that was moved, or removed: `to` is null then. */
export async function moveFileMetadata(call: SandboxCall, from: string, to: string | null): Promise<void> {
  await change(call, false, (kept) => {
    const isMoved = (path: string) => path === from || path.startsWith(`${from}/`)
    const moved = Object.entries(kept).filter(([path]) => isMoved(path))
    const others = Object.entries(kept).filter(([path]) => !isMoved(path) && path !== to)
    if (moved.length === 0 && others.length === Object.keys(kept).length) return null
    const after =
      to === null ? [] : moved.map(([path, each]) => [to + path.slice(from.length), each] as const)
    return Object.fromEntries([...others, ...after])
  })
}

/** `decide` returns what is to be kept, or null if that does not change. */
async function change(
  call: SandboxCall,
  isFirst: boolean,
  decide: (kept: Kept) => Kept | null,
): Promise<void> {
  const { app, unitId, operations, sender, signal } = call
  const { hasAny, writing } = knownOf(app)
  if (!isFirst && hasAny.get(unitId) === false) return
  const inTurn = writing.get(unitId) ?? createSemaphore(1)
  writing.set(unitId, inTurn)
  await inTurn(async () => {
    const kept = decide(await readFileMetadata(call))
    if (kept === null) return
    const content = Buffer.from(JSON.stringify(kept))
    if (content.length > MAX_BYTES)
      throw validation([{ path: 'metadata', message: 'of all files of a sandbox must be at most 1 MB' }])
    await runOperation(operations, sender, {
      route: 'PUT /v1/units/{id}/files/content',
      input: { params: { id: unitId }, query: { path: KEPT_AT, user: 'root' } },
      bodyPieces: async function* () {
        yield content
      },
      signal,
    })
    noteAny(call, true)
  })
}

function noteAny({ app, unitId }: SandboxCall, isThere: boolean): void {
  const { hasAny, writing } = knownOf(app)
  hasAny.delete(unitId)
  hasAny.set(unitId, isThere)
  const [oldest] = hasAny.keys()
  if (hasAny.size <= MAX_KNOWN || oldest === undefined) return
  hasAny.delete(oldest)
  writing.delete(oldest)
}

function parseKept(content: Buffer): Kept {
  try {
    return keptSchema.parse(JSON.parse(content.toString('utf8')))
  } catch {
    return {}
  }
}
