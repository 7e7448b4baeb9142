// Every error a caller can get: its code, status and constructor (spec 7). The constructor decides code
// and status together, since `quota_exceeded` has two statuses. Messages say what to send instead.

export const errorCodes = [
  'validation',
  'unauthorized',
  'forbidden',
  'policy_violation',
  'quota_exceeded',
  'payment_required',
  'not_found',
  'invalid_state',
  'conflict',
  'method_not_allowed',
  'request_timeout',
  'payload_too_large',
  'unsupported_media_type',
  'misdirected_request',
  'upgrade_required',
  'headers_too_large',
  'provider_error',
  'unavailable',
  'internal',
] as const
export type ErrorCode = (typeof errorCodes)[number]

/** Why a path in a unit cannot be read or written so (docs/files.md). One that is not there is `not_found`. */
export const fileReasons = [
  'not_a_file',
  'not_a_directory',
  'directory_not_empty',
  'disk_full',
  'too_large',
  'not_permitted',
  'read_only',
  'too_many_links',
  'name_too_long',
  'refused',
] as const
export type FileReason = (typeof fileReasons)[number]

/** One refused field: `path` as `spec.env.NAME`, empty for the body itself (design 5). */
export type Issue = {
  path: string
  message: string
  /** Of a path in a unit: what is wrong with it, for programs. */
  reason?: FileReason
}

export class AppError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly details: unknown
  readonly retryAfterS: number | null
  /** What was not found: `unit`, `file`. Not part of an answer. */
  readonly noun: string | null

  constructor(
    code: ErrorCode,
    status: number,
    message: string,
    options: { details?: unknown; retryAfterS?: number; noun?: string; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'AppError'
    this.code = code
    this.status = status
    this.details = options.details
    this.retryAfterS = options.retryAfterS ?? null
    this.noun = options.noun ?? null
  }
}

export function validation(issues: Issue[]): AppError {
  const [first] = issues
  const message = first
    ? [first.path, first.message].filter((part) => part !== '').join(': ')
    : 'Invalid request.'
  return new AppError('validation', 400, message, { details: issues })
}

export function unauthorized(
  message = 'Send a valid API key as "Authorization: Bearer <API_KEY>".',
): AppError {
  return new AppError('unauthorized', 401, message)
}

export function forbidden(message: string): AppError {
  return new AppError('forbidden', 403, message)
}

export function policyViolation(message: string, details: unknown): AppError {
  return new AppError('policy_violation', 402, message, { details })
}

/** For the limits on concurrent units and daily spend; a rate limit is `rateLimited`. */
export function quotaExceeded(message: string, details: unknown): AppError {
  return new AppError('quota_exceeded', 402, message, { details })
}

/** The team is out of credits. */
export function paymentRequired(message: string, details: unknown): AppError {
  return new AppError('payment_required', 402, message, { details })
}

export function rateLimited(message: string, retryAfterS: number): AppError {
  return new AppError('quota_exceeded', 429, message, { retryAfterS })
}

export const tryAgainIn = (seconds: number): string => `Try again in ${seconds} s.`

/** `limit`: such as "120 calls a minute". */
export function limitReached(limit: string, retryAfterS: number): AppError {
  return rateLimited(`The limit is ${limit}. ${tryAgainIn(retryAfterS)}`, retryAfterS)
}

/** `id` is empty if the value sent is a secret that must not be repeated. */
export function notFound(noun: string, id: string): AppError {
  const which = id === '' ? `such ${noun}` : `${noun} "${id.slice(0, 100)}"`
  return new AppError('not_found', 404, `There is no ${which}.`, { noun })
}

/** `details` as in spec 3: `{ machineState, lastExit, providerSaid }`, or `{ lastExit }` once stopped. */
export function invalidState(message: string, details: unknown): AppError {
  return new AppError('invalid_state', 409, message, { details })
}

/** For a name that is taken (design 5). */
export function conflict(message: string, details: unknown = null): AppError {
  return new AppError('conflict', 409, message, { details })
}

export function providerError(
  message: string,
  options: { details?: unknown; cause?: unknown } = {},
): AppError {
  return new AppError('provider_error', 502, message, options)
}

/** For a part of the service that is down for a moment; the same call may succeed after `retryAfterS`. */
export function unavailable(message: string, retryAfterS: number, cause?: unknown): AppError {
  return new AppError('unavailable', 503, message, { retryAfterS, cause })
}
