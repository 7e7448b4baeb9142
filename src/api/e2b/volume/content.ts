// /volumecontent/{id}: the files of a volume, by its token. Each call is an operation about the volume's unit.

import { z } from 'zod'
import { conflict, notFound, validation } from '../../../contract/errors.ts'
import type { DirectoryList, DirectoryMade, FileFacts } from '../../../contract/files.ts'
import { limits } from '../../../contract/limits.ts'
import { parse } from '../../../contract/parse.ts'
import { getUnit } from '../../../domain/units/get.ts'
import { isByteStream, sendByteStream } from '../../http/byte-stream.ts'
import { sendJson } from '../../http/response.ts'
import { bounded } from '../bounded.ts'
import { readJson } from '../control/call.ts'
import { isVolume } from '../control/volumes.ts'
import { orRefused } from '../refused.ts'
import { newSender, runOperation, runStreamed, type Input, type Sender } from '../run.ts'
import { unitIdOf } from '../sandbox-id.ts'
import type { Arrived } from '../sandbox-call.ts'
import { bearerIn, clientOf, presentedToken } from '../sender.ts'
import { entriesIn, toEntry } from './entries.ts'
import { pathInUnit, pathInVolume, VOLUME_ROOT } from './paths.ts'

export const VOLUME_CONTENT = '/volumecontent/'

type VolumeCall = Arrived & { sender: Sender; unitId: string; query: URLSearchParams; path: string }

const PATHS = /^\/volumecontent\/([0-9a-f]{32})\/(path|dir|file)$/

export async function serveVolumeContent(
  arrived: Arrived,
  path: string,
  query: URLSearchParams,
): Promise<void> {
  const { app, operations, request, response, peer, requestId } = arrived
  const [, volumeId = '', what = ''] = PATHS.exec(path) ?? []
  const unitId = unitIdOf(volumeId)
  if (unitId === null) throw notFound('call', `${request.method} ${path.slice(0, 100)}`)
  const token = bearerIn(request) ?? ''
  const presented = presentedToken(request, { publicUrl: app.config.publicUrl, unitId, token })
  const caller = await operations.authenticate({ presented, peer })
  const sender = newSender({ caller, client: clientOf(request), presented, peer, requestId })
  await orRefused(arrived, sender, async () => {
    const act = methods[`${request.method} ${what}`]
    if (act === undefined) throw notFound('call', `${request.method} ${path}`)
    // The token of a sandbox is for its unit too, which has no such files.
    if (!isVolume(await getUnit(app, caller, unitId))) throw notFound('volume', volumeId)
    const answer = await act({
      ...arrived,
      sender,
      unitId,
      query,
      path: pathInUnit(query.get('path') ?? '/'),
    })
    if (answer === SENT) return
    if (answer === null) response.writeHead(204, { 'cache-control': 'no-store' }).end()
    else sendJson(response, request.method === 'GET' || request.method === 'PATCH' ? 200 : 201, answer)
  })
}

/** The answer has gone out already. */
const SENT = Symbol('sent')

const methods: Record<string, (call: VolumeCall) => Promise<unknown>> = {
  'GET path': readEntry,
  'PATCH path': async (call) => {
    const asked = await readJson(call, ownershipSchema)
    await own(call, asked)
    return await readEntry(call)
  },
  'DELETE path': async (call) => {
    if (call.path === VOLUME_ROOT) throw validation([{ path: 'path', message: 'must be below the root' }])
    await operate(call, 'DELETE /v1/units/{id}/files', {
      query: { path: call.path, recursive: 'true' },
    })
    return null
  },
  'GET dir': list,
  'POST dir': makeDir,
  'GET file': sendFile,
  'PUT file': receiveFile,
}

const id = z.coerce.number().int().min(0).max(0xffff_fffe)
const ownershipSchema = z.object({
  uid: id.nullish(),
  gid: id.nullish(),
  mode: z.coerce.number().int().min(0).max(0o7777).nullish(),
})
type Ownership = z.output<typeof ownershipSchema>

const dirSchema = z.object({ depth: z.coerce.number().int().min(1).max(limits.directoryDepth).default(1) })

async function readEntry(call: VolumeCall): Promise<object> {
  const { target, ...facts } = await factsOf(call)
  return toEntry(pathInVolume(call.path), facts, target)
}

async function factsOf(call: VolumeCall): Promise<FileFacts> {
  return (await operate(call, 'GET /v1/units/{id}/files/facts', { query: { path: call.path } })) as FileFacts
}

async function list(call: VolumeCall): Promise<object[]> {
  const { depth } = parse(dirSchema, Object.fromEntries(call.query))
  const found: object[] = []
  let after: string | null = null
  do {
    const query = { path: call.path, depth: String(depth), ...(after !== null && { after }) }
    const page = (await operate(call, 'GET /v1/units/{id}/directory', { query })) as DirectoryList
    found.push(...entriesIn(call.path, page.entries))
    after = page.next
  } while (after !== null)
  return found
}

/** `force`: with those above it, and one that is there is none too many. */
async function makeDir(call: VolumeCall): Promise<object> {
  const { path, query } = call
  const asked = parse(ownershipSchema, Object.fromEntries(query))
  const isForced = query.get('force') === 'true'
  if (!isForced && path !== VOLUME_ROOT)
    await factsOf({ ...call, path: path.slice(0, path.lastIndexOf('/')) })
  const made = (await operate(call, 'POST /v1/units/{id}/directory', { body: { path } })) as DirectoryMade
  if (!made.made && !isForced) throw conflict(`${pathInVolume(path)} exists already.`)
  await own(call, asked)
  return await readEntry(call)
}

async function sendFile({ operations, sender, unitId, path, signal, response }: VolumeCall) {
  const input = { params: { id: unitId }, query: { path } }
  const asked = { route: 'GET /v1/units/{id}/files/content', input, signal }
  await runStreamed(operations, sender, asked, async (stream) => {
    if (!isByteStream(stream)) throw new TypeError('a file is answered as bytes')
    await sendByteStream(response, stream, signal)
  })
  return SENT
}

async function receiveFile(call: VolumeCall): Promise<object> {
  const { operations, sender, unitId, path, query, signal, request } = call
  const asked = parse(ownershipSchema, Object.fromEntries(query))
  await runOperation(operations, sender, {
    route: 'PUT /v1/units/{id}/files/content',
    input: { params: { id: unitId }, query: { path } },
    bodyPieces: () => bounded(request),
    signal,
  })
  await own(call, asked)
  return await readEntry(call)
}

/** Users of a volume are numbers: it has no list of names. */
async function own(call: VolumeCall, { uid, gid, mode }: Ownership): Promise<void> {
  const owner = `${uid ?? ''}${gid === null || gid === undefined ? '' : `:${gid}`}`
  const cmds = [
    ...(owner === '' ? [] : [['chown', '-h', owner, call.path]]),
    ...(mode === null || mode === undefined ? [] : [['chmod', mode.toString(8), call.path]]),
  ]
  // What is not there is told as that, and not by a program.
  if (cmds.length > 0) await factsOf(call)
  for (const cmd of cmds) {
    const { exitCode, stderr } = (await operate(call, 'POST /v1/units/{id}/exec', {
      body: { cmd, user: 'root' },
    })) as { exitCode: number; stderr: string }
    if (exitCode !== 0) throw conflict(stderr.slice(0, 200))
  }
}

async function operate(call: VolumeCall, route: string, { params, ...input }: Input): Promise<unknown> {
  const { operations, sender, unitId, signal } = call
  const asked = { route, input: { ...input, params: { id: unitId, ...params } }, signal }
  return await runOperation(operations, sender, asked)
}
