// The errors that callers get for a unit whose host does not answer, or was given up.

import { AppError, providerError, tryAgainIn } from '../../contract/errors.ts'
import { isEngineError } from '../../engine/errors.ts'

/** It is asked every two seconds. */
const BACK_S = 5

/** Why a host is away whose engine refuses this server: only the operator knows which of both is meant. */
export const HOST_TAKEN_OVER = 'a server with a newer lead has called its engine'

const certificateReasons: Record<string, string> = {
  ERR_TLS_CERT_ALTNAME_INVALID:
    'the engine at its address has the certificate of another host: give each machine its own data directory and address',
  SELF_SIGNED_CERT_IN_CHAIN: 'what answers at its address has no certificate of this Berth',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'what answers at its address has no certificate of this Berth',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'what answers at its address has no certificate of this Berth',
}

/** Why a host is away at once whose engine was asked in vain. Null: it may answer in a moment. */
export function reasonToBeAway(error: unknown): string | null {
  if (isEngineError(error, 'stale_caller')) return HOST_TAKEN_OVER
  if (!isEngineError(error)) return error instanceof Error ? error.message : String(error)
  return null
}

/** Of a host that is away: what another process at its address showed. Null: nothing answers there. */
export function reasonOfCertificate(error: unknown): string | null {
  const cause = isEngineError(error) ? error.cause : null
  return cause instanceof Error && 'code' in cause ? (certificateReasons[String(cause.code)] ?? null) : null
}

/** For units of a host that is away: 503 with the time since when. */
export function hostAway(since: Date, cause?: unknown): AppError {
  const at = since.toISOString()
  const message = `The host of this unit has not answered since ${at}; units on other hosts can be used. ${tryAgainIn(BACK_S)}`
  const details = { reason: 'host_away', since: at }
  return new AppError('unavailable', 503, message, { details, retryAfterS: BACK_S, cause })
}

export const HOST_LOST =
  'The host of this unit was given up, and its disk cannot be reached. Destroy the unit, and create it anew.'

/** Nothing changes this but a host that joins again, so it is no 503. */
export function hostLost(unitId: string, cause: unknown): AppError {
  return providerError(HOST_LOST, { details: { reason: 'host_lost', unitId }, cause })
}
