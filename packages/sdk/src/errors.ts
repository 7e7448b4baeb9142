// The errors of this library: one class with a `code`. A code is one of the service's or one of the few of this
// library. An aborted call throws the reason of its signal instead.

import type { ErrorCode, ExecResult } from './contract.ts'
import type { Headers } from './platform.ts'

/** Codes of failures that no answer of the service tells of. */
export const clientErrorCodes = [
  'not_configured',
  'connection_failed',
  'timed_out',
  'command_failed',
] as const
export type ClientErrorCode = (typeof clientErrorCodes)[number]
export type BerthErrorCode = ErrorCode | ClientErrorCode

type Facts = {
  status?: number | null
  details?: unknown
  requestId?: string | null
  retryAfterMs?: number | null
  cause?: unknown
}

export class BerthError extends Error {
  override readonly name: string = 'BerthError'
  readonly code: BerthErrorCode
  /** Of the answer; null where there was none. */
  readonly status: number | null
  /** What the service says beside the message, such as the list of refused fields. */
  readonly details: unknown
  /** What to give the operator of the service. */
  readonly requestId: string | null
  /** How long to wait before the same call may succeed; null where waiting does not help. */
  readonly retryAfterMs: number | null

  constructor(code: BerthErrorCode, message: string, facts: Facts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.code = code
    this.status = facts.status ?? null
    this.details = facts.details ?? null
    this.requestId = facts.requestId ?? null
    this.retryAfterMs = facts.retryAfterMs ?? null
  }
}

/** A command that ended with another code than 0, of a call with `check: true`. */
export class CommandError extends BerthError {
  override readonly name = 'CommandError'
  readonly result: ExecResult

  constructor(command: string, result: ExecResult) {
    const said = result.stderr.trim().split('\n').at(-1)
    const ended = result.timedOut ? 'ran out of time' : `ended with ${result.exitCode}`
    super('command_failed', `${command} ${ended}${said ? `: ${said}` : ''}`)
    this.result = result
  }
}

/** Whether it is an error of this library, of this code where one is named. */
export function isBerthError(error: unknown, code?: BerthErrorCode): error is BerthError {
  return error instanceof BerthError && (code === undefined || error.code === code)
}

/** Of an answer that is no success. A proxy in between may answer with anything. */
export function errorOf(status: number, headers: Headers, text: string): BerthError {
  const retryAfter = Number(headers.get('retry-after') ?? Number.NaN)
  const facts = {
    status,
    requestId: headers.get('x-request-id'),
    retryAfterMs: Number.isFinite(retryAfter) ? Math.max(0, retryAfter * 1000) : null,
  }
  return (
    errorOfEnvelope(parsed(text), facts) ??
    new BerthError(codeOf(status), `HTTP ${status}, and not by Berth.`, facts)
  )
}

/** Of an error envelope, as an answer or the last event of a stream; null for anything else. */
export function errorOfEnvelope(body: unknown, facts: Facts): BerthError | null {
  const { error } = (body ?? {}) as {
    error?: { code?: unknown; message?: unknown; details?: unknown; requestId?: unknown }
  }
  if (typeof error?.code !== 'string' || typeof error.message !== 'string') return null
  const requestId = typeof error.requestId === 'string' ? error.requestId : (facts.requestId ?? null)
  return new BerthError(error.code as ErrorCode, forCallers(error.message), {
    ...facts,
    details: error.details,
    requestId,
  })
}

/** A message for who writes calls by hand, in the words of who calls this library: it writes bodies and headers itself. */
function forCallers(message: string): string {
  if (message.startsWith('Send a valid API key'))
    return 'The service does not know this API key. Make one under Agents in the dashboard, and set BERTH_API_KEY.'
  const [, noun, name] = /^There is no (unit|stack) "(?!(?:unit|stack)_)(.+)"\.$/.exec(message) ?? []
  if (name !== undefined) return `${message} An id is asked for here; ${noun}s.find("${name}") takes a name.`
  return message.replace(/^spec\.(?=\w)/, '')
}

const codes: Record<number, ErrorCode> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  413: 'payload_too_large',
  429: 'quota_exceeded',
  502: 'provider_error',
  503: 'unavailable',
}

function codeOf(status: number): ErrorCode {
  return codes[status] ?? (status < 500 ? 'validation' : 'internal')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

export const endedTooSoon = (): BerthError =>
  new BerthError('connection_failed', 'The connection ended before the command did.')

export const noAnswer = (url: string, ms: number): BerthError =>
  new BerthError('timed_out', `No answer from ${url} in ${ms} ms.`)
