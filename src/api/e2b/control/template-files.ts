// The files that a build copies. Clients send them before the build begins, as one archive for each step: it lies in a unit of
// the team, so that it counts as what else the team keeps, and is carried from there into the unit of the build.

import { z } from 'zod'
import { validation } from '../../../contract/errors.ts'
import { parse } from '../../../contract/parse.ts'
import { type Unit, unitListQuerySchema } from '../../../contract/unit.ts'
import { unitTokenOf } from '../../../domain/credentials/unit-token.ts'
import { listUnits } from '../../../domain/units/list.ts'
import { HOUR, SECOND } from '../../../lib/clock.ts'
import { createByteQueue } from '../../../lib/concurrency/byte-queue.ts'
import { toAppError } from '../../http/errors.ts'
import { isByteStream } from '../../http/byte-stream.ts'
import { signatureOf } from '../envd/signed-url.ts'
import { runOperation, runStreamed } from '../run.ts'
import { sandboxIdOf } from '../sandbox-id.ts'
import { headerOf } from '../sandbox-call.ts'
import { type ControlAnswer, type ControlCall, perform } from './call.ts'
import { createUnit, newName } from './make.ts'
import { isGone } from './sandbox.ts'
import { noneWithoutStack, SNAPSHOT_STACK } from './snapshots.ts'
import { DEFAULT_TEMPLATE, imageOf } from './templates.ts'

/** The label of the unit with a team's archives. */
const HOLDS = 'templateFiles'
const HOLDER = { [HOLDS]: 'yes' }
/** After the last step that asked for it. */
const KEPT_FOR = '2h'
const SLEEPS_AFTER = '5m'
const LINK_MS = HOUR
const OWNER = 'root'
const WAITING_BYTES = 1024 * 1024

export const filesHashSchema = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in hexadecimal digits')

/** Makings of such units, by team: the steps of one build ask all at once. */
const making = new Map<string, Promise<Unit>>()

/** GET /templates/{id}/files/{hash}: where the archive of a step is sent, unless it is there. */
export async function linkFiles(call: ControlCall, _template: string, asked: string): Promise<ControlAnswer> {
  const hash = parse(z.object({ hash: filesHashSchema }), { hash: asked }).hash
  const holder = await holderOf(call)
  return {
    status: 201,
    body: { present: await isThere(call, holder, pathOf(hash)), ...linkTo(call, holder, pathOf(hash)) },
  }
}

/** Brings the archive of a step into the unit of the build, to the same path. */
export async function carryFiles(call: ControlCall, hash: string, { id }: Unit): Promise<string> {
  const { operations, sender, signal } = call
  const holder = await holderOf(call)
  const path = pathOf(hash)
  if (!(await isThere(call, holder, path)))
    throw validation([{ path: 'filesHash', message: 'names files that were not sent' }])
  const pieces = createByteQueue<Buffer>(WAITING_BYTES, ({ length }) => length)
  const query = { path, user: OWNER }
  const route = 'GET /v1/units/{id}/files/content'
  const asked = { route, input: { params: { id: holder.id }, query }, signal }
  const reading = runStreamed(operations, sender, asked, async (stream) => {
    if (!isByteStream(stream)) throw new TypeError('a file is answered as bytes')
    await stream.sendBytes(async (data) => await pieces.push(data))
  }).finally(() => pieces.end())
  reading.catch(() => {})
  await runOperation(operations, sender, {
    route: 'PUT /v1/units/{id}/files/content',
    input: { params: { id }, query },
    // An archive that breaks off is not one that has ended.
    bodyPieces: async function* () {
      yield* pieces
      await reading
    },
    signal,
  }).finally(() => pieces.end())
  return path
}

function pathOf(hash: string): string {
  return `/var/tmp/template-files/${hash}`
}

async function isThere(call: ControlCall, { id }: Unit, path: string): Promise<boolean> {
  const route = 'GET /v1/units/{id}/files/facts'
  return await perform(call, { route, input: { params: { id }, query: { path } } }).then(
    () => true,
    (error: unknown) => {
      if (toAppError(error).status !== 404) throw error
      return false
    },
  )
}

/** A signed URL of that one file, at the host name of its unit or, without a domain, with the unit in a header. */
function linkTo(call: ControlCall, { id }: Unit, path: string): { url: string; headers?: object } {
  const { app, sender } = call
  const token = unitTokenOf(app, { unitId: id, credentialId: sender.caller.credentialId })
  const expiry = String(Math.ceil((app.clock.now().getTime() + LINK_MS) / SECOND))
  const signature = signatureOf([path, 'write', OWNER, token, expiry])
  const signed = { path, username: OWNER, signature, signature_expiration: expiry }
  const query = new URLSearchParams(signed).toString()
  const host = headerOf(call, ASKED_HOST)
  if (host?.startsWith(CONTROL_NAME))
    return { url: `https://49983-${sandboxIdOf(id)}.${host.slice(CONTROL_NAME.length)}/files?${query}` }
  return {
    url: `${app.config.publicUrl}/e2b/sandbox/files?${query}`,
    headers: { 'E2b-Sandbox-Id': sandboxIdOf(id) },
  }
}

/** The name that a client asked the gateway for, which the gateway writes down. */
const ASKED_HOST = 'e2b-host'
const CONTROL_NAME = 'api.'

async function holderOf(call: ControlCall): Promise<Unit> {
  const { teamId } = call.sender.caller
  const found = making.get(teamId) ?? findOrMake(call).finally(() => making.delete(teamId))
  making.set(teamId, found)
  return await found
}

async function findOrMake(call: ControlCall): Promise<Unit> {
  const metadata = new URLSearchParams(HOLDER).toString()
  const query = parse(unitListQuerySchema, { stack: SNAPSHOT_STACK, metadata })
  const { units } = await listUnits(call.app, call.sender.caller, query).catch(noneWithoutStack)
  const found = units.find((unit) => !isGone(unit))
  if (found === undefined) return await makeHolder(call)
  const input = { params: { id: found.id }, body: { timeToLive: KEPT_FOR } }
  return (await perform(call, { route: 'PATCH /v1/units/{id}', input })) as Unit
}

async function makeHolder(call: ControlCall): Promise<Unit> {
  const spec = {
    name: newName('template'),
    image: imageOf(DEFAULT_TEMPLATE),
    sleep: SLEEPS_AFTER,
    timeToLive: KEPT_FOR,
    atEnd: 'destroy',
    metadata: HOLDER,
    egress: { mode: 'none', siblings: 'none' },
  }
  const body = { stack: SNAPSHOT_STACK, spec }
  return await createUnit(call, () => body)
}
