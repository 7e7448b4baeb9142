// Translates engine errors for callers. A caller sees the engine's words only if the engine marked them public;
// everything else is logged where it is caught.

import { AppError, invalidState, providerError, unavailable } from '../../../contract/errors.ts'
import { HostLostError, isEngineError } from '../../../engine/errors.ts'
import { HOST_LOST, hostAway, hostLost } from '../../hosts/away.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { NotReady } from './readiness.ts'

/** Returns the sentence for a machine that could not be created or started. */
export function failureText(error: unknown, unit: UnitRecord): string {
  if (error instanceof AppError) return error.message
  if (error instanceof HostLostError) return HOST_LOST
  if (!isEngineError(error)) return 'The service failed while it worked on this unit.'
  const { kind, publicMessage } = error
  switch (kind) {
    case 'image_not_found':
      return `Image "${unit.image}": ${publicMessage} Check its name and tag.`
    case 'image_denied':
      return `Image "${unit.image}": ${publicMessage} Use a public image, or one this service has credentials for.`
    case 'image_unavailable':
      return `Image "${unit.image}": ${publicMessage} Try again later.`
    case 'image_invalid':
      return `Image "${unit.image}": ${publicMessage}`
    case 'start_refused':
    case 'start_failed': {
      const said = kind === 'start_failed' && error instanceof NotReady ? error.said : ''
      return `The unit could not be started. ${publicMessage} ${said}`.trim()
    }
    case 'host_full':
    case 'timeout':
    case 'engine_away':
      return `${publicMessage} Try again later.`
    default:
      return 'The host failed while it worked on this unit.'
  }
}

/** How soon the engine is back after a restart. */
const ENGINE_BACK_S = 2
/** Until it is known whether its host is away. */
const ENGINE_SILENT = 'The engine does not answer, as while it restarts; try again in a moment.'

/** For an operation that leaves its unit unchanged. Errors that are not the engine's are returned as they are. */
export function engineFailure(error: unknown, unit: UnitRecord): unknown {
  if (isEngineError(error, 'engine_away')) return engineAway(error)
  if (error instanceof HostLostError) return hostLost(unit.id, error)
  if (!isEngineError(error)) return error
  // Nothing is wrong with the host: what is on the unit's own disk has to change first.
  if (error.kind === 'start_refused') return notPossible(unit, failureText(error, unit), { unitId: unit.id })
  return providerError(failureText(error, unit), { details: { unitId: unit.id }, cause: error })
}

/** For a query to the engine that concerns no unit. */
export function engineAway(error: unknown): unknown {
  if (!isEngineError(error)) return error
  if (error.awaySince) return hostAway(error.awaySince, error)
  return unavailable(ENGINE_SILENT, ENGINE_BACK_S, error)
}

export function notPossibleNow(unit: UnitRecord, what: string): AppError {
  const next = nextStep(unit)
  return notPossible(unit, [`The unit is ${unit.state}, so ${what}.`, next].filter(Boolean).join(' '))
}

/**
 * Spec 3: `details` is `{ lastExit }` for a stopped unit, else the state of its machine and what the host reported.
 */
export function notPossible(unit: UnitRecord, message: string, more: object = {}): AppError {
  const { state, lastExit, error } = unit
  const machine = state === 'stopped' ? { lastExit } : { machineState: state, lastExit, providerSaid: error }
  return invalidState(message, { ...machine, ...more })
}

/** Returns what the caller can do; null if it can only wait. */
function nextStep(unit: UnitRecord): string | null {
  const { id, state, error } = unit
  if (state === 'stopped') return wayBack(unit)
  if (state === 'creating') return `It is still being created: wait until GET /v1/units/${id} says "running".`
  if (state !== 'error') return null
  return `${error ?? 'It could not be created.'} It cannot be used: destroy it, and create another.`
}

/** Returns what makes the unit run again (spec 3). */
function wayBack({ id, stoppedReason }: UnitRecord): string {
  switch (stoppedReason) {
    case 'cap':
      return 'A limit of its credential stopped it: daily spend or units at once. It wakes at its next use once that allows, see GET /v1/quota.'
    case 'credits':
      return 'It was stopped because its team is out of credits. It wakes at its next use once there are some.'
    default:
      return `Start it first: POST /v1/units/${id}/start.`
  }
}
