// A unit as this interface shows a sandbox.

import type { App } from '../../../app.ts'
import { notFound } from '../../../contract/errors.ts'
import type { Unit } from '../../../contract/unit.ts'
import type { Caller } from '../../../domain/credentials/caller.ts'
import { unitTokenOf } from '../../../domain/credentials/unit-token.ts'
import { getUnit } from '../../../domain/units/get.ts'
import type { PortVisits } from '../../../domain/units/port-rules.ts'
import { machineSizes } from '../../../domain/units/model/machine.ts'
import { toAppError } from '../../http/errors.ts'
import { sandboxIdOf, unitIdOf } from '../sandbox-id.ts'
import { asWritten, EVERYWHERE } from './network.ts'
import { CODE_TEMPLATE, ownMetadata, templateIn, templateOf } from './templates.ts'
import { trafficTokenOf } from './visits.ts'

/** Clients choose what they ask for by this: the newest version whose calls are all answered here. */
export const ENVD_VERSION = '0.6.4'

/** Where no end is set, a client still expects one. */
const NO_END = '9999-12-31T23:59:59.000Z'

export function isGone({ state }: Pick<Unit, 'state'>): boolean {
  return state === 'destroying' || state === 'destroyed' || state === 'error'
}

export function isPaused({ state }: Pick<Unit, 'state'>): boolean {
  return state === 'sleeping' || state === 'stopped' || state === 'stopping'
}

/** The label of a snapshot: the sandbox that it is of. */
export const SNAPSHOT_OF = 'snapshotOf'
/** The label of a volume: the name that clients gave it. */
export const VOLUME_NAME = 'volumeName'

/** Whether a label says that a unit is no sandbox. */
export function isOfOthers(label: string): boolean {
  return label === SNAPSHOT_OF || label === VOLUME_NAME
}

/** Throws `not_found` also for a sandbox of another team, for one that was killed, and for a snapshot or a volume. */
export async function findSandbox(app: App, caller: Caller, sandboxId: string): Promise<Unit> {
  const unitId = unitIdOf(sandboxId)
  const unit = unitId === null ? null : await getUnit(app, caller, unitId).catch(nullIfHidden)
  if (unit === null || isGone(unit) || Object.keys(unit.metadata).some(isOfOthers))
    throw notFound('sandbox', sandboxId)
  return unit
}

export function nullIfHidden(error: unknown): null {
  const { status } = toAppError(error)
  if (status !== 403 && status !== 404) throw error
  return null
}

/** What a client needs to use a sandbox. */
export function toAccess(app: App, { credentialId }: Caller, unit: Unit, visits: PortVisits) {
  const token = unitTokenOf(app, { unitId: unit.id, credentialId })
  return {
    sandboxID: sandboxIdOf(unit.id),
    templateID: templateIn(unit),
    clientID: sandboxIdOf(unit.id).slice(0, 8),
    envdVersion: ENVD_VERSION,
    envdAccessToken: token,
    // Clients of the code interpreter have no other credential for its contexts.
    trafficAccessToken:
      trafficTokenOf(app, unit, visits) ?? (templateOf(unit.image) === CODE_TEMPLATE ? token : null),
    domain: null,
    alias: templateIn(unit),
  }
}

export function toListed(unit: Unit) {
  const { cpus, memoryMb, diskGb } = machineSizes[unit.size]
  return {
    sandboxID: sandboxIdOf(unit.id),
    templateID: templateIn(unit),
    clientID: sandboxIdOf(unit.id).slice(0, 8),
    alias: templateIn(unit),
    startedAt: unit.startedAt ?? unit.createdAt,
    endAt: unit.endsAt ?? NO_END,
    state: isPaused(unit) ? 'paused' : 'running',
    cpuCount: Math.max(1, Math.ceil(cpus)),
    memoryMB: memoryMb,
    diskSizeMB: diskGb * 1024,
    envdVersion: ENVD_VERSION,
    metadata: ownMetadata(unit),
    volumeMounts: [],
  }
}

export function toDetail(app: App, caller: Caller, unit: Unit, visits: PortVisits) {
  const { envdAccessToken } = toAccess(app, caller, unit, visits)
  const { mode, allow, deny } = unit.egress
  return {
    ...toListed(unit),
    envdAccessToken,
    domain: null,
    allowInternetAccess: mode !== 'none',
    network: {
      ...(mode !== 'open' && { allowOut: allow.map(asWritten), denyOut: [EVERYWHERE] }),
      ...(mode === 'open' && deny !== undefined && { denyOut: deny.map(asWritten) }),
      allowPublicTraffic: !visits.isPrivate,
      ...(visits.host !== null && { maskRequestHost: visits.host }),
    },
    lifecycle: {
      onTimeout: unit.atEnd === 'destroy' ? 'kill' : 'pause',
      autoResume: visits.wakesFor !== null,
    },
  }
}
