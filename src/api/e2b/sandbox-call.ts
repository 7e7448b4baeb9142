// A request to what is inside of a sandbox: which sandbox and port, as which user, and by whose token.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { App } from '../../app.ts'
import { unauthorized } from '../../contract/errors.ts'
import { PORT_HOST_PAUSED } from '../../contract/port-host.ts'
import type { Unit } from '../../contract/unit.ts'
import { getUnit } from '../../domain/units/get.ts'
import { getPortVisits } from '../../domain/units/port-rules.ts'
import { SECOND } from '../../lib/clock.ts'
import type { Operations } from '../operation.ts'
import { SandboxGone } from './errors.ts'
import { type Asked, type Input, newSender, runOperation, type Sender } from './run.ts'
import { unitIdOf } from './sandbox-id.ts'
import { clientOf, presentedToken } from './sender.ts'

/** What a request brings, before anything of it is believed. */
export type Arrived = {
  app: App
  operations: Operations
  requestId: string
  request: IncomingMessage
  response: ServerResponse
  peer: string
  /** Aborts when the client goes away, or the server stops. */
  signal: AbortSignal
  stopping: AbortSignal
}

export type SandboxCall = Arrived & {
  sandboxId: string
  unitId: string
  sender: Sender
  /** The user that the client names; null for the default one. */
  user: string | null
  /** How often a silent stream says that it is there. */
  keepaliveMs: number
}

const KEEPALIVE_S = { min: 1, max: 600, default: 90 }
const USER = /^[a-z_][a-z0-9_-]{0,31}$/i

/** Throws `unauthorized` for a token that is not one of this sandbox. `signer`: the token that signed the URL, if one did. */
export async function openSandboxCall(
  arrived: Arrived,
  sandboxId: string,
  signer: string | null,
): Promise<SandboxCall> {
  const { app, operations, request, peer, requestId } = arrived
  const unitId = unitIdOf(sandboxId)
  if (unitId === null) throw new SandboxGone(sandboxId.slice(0, 64))
  const { publicUrl } = app.config
  const token = headerOf(arrived, 'x-access-token') ?? signer ?? ''
  const presented = presentedToken(request, { publicUrl, unitId, token })
  const caller = await operations.authenticate({ presented, peer })
  const sender = newSender({ caller, client: clientOf(request), presented, peer, requestId })
  return {
    ...arrived,
    sandboxId,
    unitId,
    sender,
    user: userOf(arrived),
    keepaliveMs: keepaliveOf(arrived) * SECOND,
  }
}

/** Throws unless the unit runs; one that visits resume is resumed. An operation follows, which is written down. */
export async function checkRuns(call: SandboxCall): Promise<Unit> {
  const { app, sender, sandboxId, unitId } = call
  const unit = await getUnit(app, sender.caller, unitId)
  if (unit.state === 'running') return unit
  const { wakesFor } = await getPortVisits(app, sender.caller, unitId)
  if (wakesFor === null || (unit.state !== 'sleeping' && unit.state !== 'stopping')) {
    refuseOthers(sandboxId, unit)
    return unit
  }
  await operate(call, 'POST /v1/units/{id}/start', {})
  if (unit.timeToLive === null)
    await operate(call, 'PATCH /v1/units/{id}', { body: { timeToLive: wakesFor } })
  return unit
}

/** The same as an operation. It is no use of the unit and wakes nothing. */
export async function readHealth(call: SandboxCall): Promise<void> {
  refuseOthers(call.sandboxId, (await operate(call, 'GET /v1/units/{id}', {})) as Unit)
}

function refuseOthers(sandboxId: string, unit: Unit): void {
  if (unit.state === 'destroying' || unit.state === 'destroyed' || unit.state === 'error')
    throw new SandboxGone(sandboxId)
  if (unit.state === 'sleeping' || unit.state === 'stopped' || unit.state === 'stopping')
    throw new SandboxGone(sandboxId, PORT_HOST_PAUSED)
}

/** Runs an operation about the sandbox's unit. */
export async function operate(
  call: SandboxCall,
  route: Asked['route'],
  { params, ...input }: Input,
): Promise<unknown> {
  const { operations, sender, unitId, signal } = call
  return await runOperation(operations, sender, {
    route,
    input: { ...input, params: { id: unitId, ...params } },
    signal,
  })
}

export function headerOf({ request }: Pick<Arrived, 'request'>, name: string): string | null {
  const value = request.headers[name]
  return typeof value === 'string' && value !== '' ? value : null
}

/** HTTP's Basic, with an empty password. */
function userOf(arrived: Arrived): string | null {
  const encoded = /^basic +(\S+)$/i.exec(headerOf(arrived, 'authorization') ?? '')?.[1]
  if (encoded === undefined) return null
  const [name = ''] = Buffer.from(encoded, 'base64').toString('utf8').split(':')
  return checkUser(name)
}

/** A name that no system has is refused as an unknown one is. */
export function checkUser(name: string): string {
  if (!USER.test(name)) throw unauthorized('There is no such user in the sandbox.')
  return name
}

function keepaliveOf(arrived: Arrived): number {
  const seconds = Number(headerOf(arrived, 'keepalive-ping-interval') ?? KEEPALIVE_S.default)
  if (!Number.isFinite(seconds)) return KEEPALIVE_S.default
  return Math.min(Math.max(seconds, KEEPALIVE_S.min), KEEPALIVE_S.max)
}
