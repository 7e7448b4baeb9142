// The errors of a call over the engine's socket, as EngineErrors: the engine's own (sent as JSON), an unavailable
// engine (no socket, a broken connection), and a timeout.

import { EngineError } from '../errors.ts'
import { errorAnswer } from './protocol.ts'
import { errorCodeOf } from '../../lib/error-code.ts'

/** Returns the engine's error. Throws if the JSON is not one. */
export function engineErrorIn(said: unknown): EngineError {
  const { error } = errorAnswer.parse(said)
  return new EngineError(error.kind, error.publicMessage)
}

const AWAY = new Set([
  'ENOENT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'EACCES',
  'ERR_STREAM_PREMATURE_CLOSE',
  // On the way to another machine.
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ENOTFOUND',
  'EAI_AGAIN',
])

/** What TLS says of a certificate or of the other side: `ERR_SSL_…`, `CERT_HAS_EXPIRED`, `INVALID_PURPOSE` … */
const TLS_FAILURE = /^(?:ERR_SSL_|ERR_TLS_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_|PATH_LENGTH_)/

/** Errors of the caller, thrown into a stream, are returned unchanged. */
export function toEngineError(error: unknown): unknown {
  const code = errorCodeOf(error)
  return AWAY.has(code) || TLS_FAILURE.test(code) ? awayError(error) : error
}

export function awayError(cause: unknown): EngineError {
  return new EngineError('engine_away', 'The engine does not answer; it may be restarting. Try again.', {
    cause,
  })
}

export function silenceError(operation: string): EngineError {
  return new EngineError('timeout', `The engine did not answer in time (${operation}).`)
}
