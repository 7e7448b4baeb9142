// The ways in which a call over the engine's socket can fail, as EngineErrors: the engine's own (carried as JSON), the
// engine being away (no socket, a broken connection), and it saying nothing for long.

import { EngineError } from '../errors.ts'
import { errorAnswer } from './protocol.ts'

/** What the engine said. Throws when that is no error of its own. */
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
])

/** Errors of the caller's own, thrown into a stream, stay what they are. */
export function toEngineError(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return AWAY.has(code) ? awayError(error) : error
}

export function awayError(cause: unknown): EngineError {
  return new EngineError('engine_away', 'The engine is not there; it may be restarting. Try again.', {
    cause,
  })
}

export function silenceError(operation: string): EngineError {
  return new EngineError('timeout', `The engine did not answer in time (${operation}).`)
}
