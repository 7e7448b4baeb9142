// From anything thrown to the one envelope of spec 7. What is not an AppError is a bug: the caller learns
// its request id and nothing else, the log gets it whole.

import { z } from 'zod'
import { AppError, errorCodes, unavailable } from '../../contract/errors.ts'
import type { Log } from '../../lib/log.ts'
import { isOutage } from '../../store/outage.ts'

/** Every error status: what it means and what to do then, for the OpenAPI document and the tests. */
export const errorStatuses = {
  400: 'The request is invalid and nothing was done. `details` lists each refused field with what to send instead.',
  401: 'The credential is missing, malformed, expired or revoked. Send a valid API key as `Authorization: Bearer <API_KEY>`.',
  402: "The credential's policy, a quota or the team's credits do not allow it. The message says which; GET /v1/quota shows the numbers. Sending the same call again changes nothing.",
  403: 'This credential or plan may not do this, or the team has no access to the resource. Sending the same call again changes nothing.',
  404: 'There is nothing of that id or name.',
  409: "Not possible in the unit's current state, or the name is taken. The message says what to do first.",
  413: 'The body is too large. The message names the limit.',
  415: 'The body has a media type, charset or encoding that is not read here. Send UTF-8 without compression.',
  429: 'Rate limit. Wait as many seconds as `retry-after` says, then send the call again.',
  500: 'A fault of the service. Report it with the `requestId`.',
  502: 'The infrastructure failed, and what was begun is cleaned up. The call can be sent again.',
  503: 'A part of the service is away. Wait as many seconds as `retry-after` says, then send the call again.',
} as const satisfies Record<number, string>

export type ErrorStatus = keyof typeof errorStatuses

/** What any route with a caller may answer. */
export const commonErrors: readonly ErrorStatus[] = [400, 401, 403, 429, 500, 503]

export const errorSchema = z
  .strictObject({
    error: z.strictObject({
      code: z.enum(errorCodes),
      message: z.string(),
      details: z.unknown().optional(),
      requestId: z.string().optional(),
    }),
  })
  .meta({ id: 'Error' })

export type ErrorEnvelope = z.infer<typeof errorSchema>

// A body can be wrong in a hundred thousand places; the answer names the first.
const MAX_DETAILS = 100

export function errorEnvelope(error: AppError, requestId: string): ErrorEnvelope {
  const { code, message, details } = error
  const kept = Array.isArray(details) ? details.slice(0, MAX_DETAILS) : details
  return { error: { code, message, ...(kept === undefined ? {} : { details: kept }), requestId } }
}

/** The error a caller sees. `cause` keeps what it was. */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error
  if (isOutage(error)) return unavailable('The database is away for a moment; send the call again.', 2, error)
  return new AppError('internal', 500, 'Something failed on our side. Tell us the requestId.', {
    cause: error,
  })
}

/** Faults, and refusals that have one behind them. Fields are chosen: a driver's error can hold values. */
export function logError(log: Log, error: unknown, requestId: string): void {
  const { status, code, cause } = toAppError(error)
  if (status === 500) log.error({ requestId, error: describe(cause ?? error) }, 'a call failed')
  else if (cause !== undefined) log.warn({ requestId, status, code, error: describe(cause) }, 'a call failed')
}

function describe(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error)
  const { name, message, stack, cause } = error
  return { name, message, stack, ...(cause === undefined ? {} : { cause: describe(cause) }) }
}

export function payloadTooLarge(maxBytes: number): AppError {
  return new AppError('payload_too_large', 413, `The body must be at most ${maxBytes} bytes.`)
}

export function unsupportedMediaType(message: string): AppError {
  return new AppError('unsupported_media_type', 415, message)
}

/** Nobody is left to read the answer; 499 is for the audit trail. */
export function callerGone(): AppError {
  return new AppError('unavailable', 499, 'The caller went away.')
}

export function serverStopping(): AppError {
  return new AppError('unavailable', 503, 'The server is restarting; send the call again.', {
    retryAfterS: 1,
  })
}
