// Turns anything thrown into the one error envelope of spec 7. What is not an AppError is a bug: the caller gets only
// the request id, and the log gets the whole error.

import { z } from 'zod'
import { AppError, errorCodes, unavailable } from '../../contract/errors.ts'
import type { Log } from '../../lib/log.ts'
import { isOutage } from '../../store/outage.ts'

/** Each error status with its meaning and what to do next, for the OpenAPI document and the tests. */
export const errorStatuses = {
  400: 'The request is invalid and nothing was done. `details` lists each refused field with what to send instead.',
  401: 'The credential is missing, malformed, expired or revoked. Send a valid API key as `Authorization: Bearer <API_KEY>`.',
  402: "The credential's policy, a quota or the team's credits do not allow it. The message says which; GET /v1/quota shows the numbers. Sending the same call again changes nothing.",
  403: 'This credential or plan may not do this, or the team has no access to the resource. Sending the same call again changes nothing.',
  404: 'Nothing with this id or name exists, or it belongs to another team. Use the list operation to find the right one.',
  409: "The unit's current state does not allow this, or the name is taken. The message says what to do first.",
  413: 'The body is too large. The message names the limit.',
  415: 'The media type, charset or encoding of the body is not supported. Send UTF-8 without compression.',
  429: 'A rate limit is exceeded. Wait the number of seconds in `retry-after`, then send the call again.',
  500: 'The service has a fault. Report it with the `requestId`, and read the current state before you send the call again.',
  502: 'The infrastructure failed, and everything the call had started is cleaned up. Send the call again.',
  503: 'A part of the service is unavailable. Wait the number of seconds in `retry-after`, then send the call again.',
} as const satisfies Record<number, string>

export type ErrorStatus = keyof typeof errorStatuses

/** The errors that every route with a caller may answer. */
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

// A body can have a hundred thousand faults; the answer lists the first ones.
const MAX_DETAILS = 100

export function errorEnvelope(error: AppError, requestId: string): ErrorEnvelope {
  const { code, message, details } = error
  const kept = Array.isArray(details) ? details.slice(0, MAX_DETAILS) : details
  return { error: { code, message, ...(kept === undefined ? {} : { details: kept }), requestId } }
}

/** Returns the error that the caller gets. Its `cause` is the original error. */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error
  if (isOutage(error))
    return unavailable('The database is unavailable for a moment; send the call again.', 2, error)
  return new AppError('internal', 500, 'The service has a fault. Report it with the requestId.', {
    cause: error,
  })
}

/**
 * Logs 5xx errors and errors with a cause. Only chosen fields are logged, because a database driver's error can hold
 * values.
 */
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

/** The client has disconnected, so no answer is sent; 499 appears only in the audit log. */
export function callerGone(): AppError {
  return new AppError('unavailable', 499, 'The caller went away.')
}

export function serverStopping(): AppError {
  return new AppError('unavailable', 503, 'The server is restarting; send the call again.', {
    retryAfterS: 1,
  })
}
