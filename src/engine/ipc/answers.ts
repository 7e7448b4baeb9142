// Answers a request of the engine's sockets and its TLS listener: validates it against protocol.ts first. Errors
// reveal nothing of the engine's internals.

import { z } from 'zod'
import type { Log } from '../../lib/log.ts'
import type { Engine } from '../engine.ts'
import { isEngineError } from '../errors.ts'
import { type ErrorAnswer, issuesOf, unaryOperations } from './protocol.ts'
import { epoch as epochSchema } from './schemas.ts'
import type { UnaryOperation, UnaryRequest } from './protocol.ts'
import { unaryHandlers } from './handlers.ts'

/** Returns the encoded answer. */
export async function performUnary<K extends UnaryOperation>(
  engine: Engine,
  operation: K,
  body: unknown,
): Promise<unknown> {
  const request = parseRequest(unaryOperations[operation].request, body) as UnaryRequest[K]
  const result = await unaryHandlers[operation](engine, request)
  // `never`: the compiler cannot see that both columns of a row of the table belong together.
  return z.encode(unaryOperations[operation].answer, result as never)
}

export function parseRequest(schema: z.ZodType, body: unknown): unknown {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  throw malformed(`The engine refuses the request: ${issuesOf(parsed.error)}.`)
}

/** The epoch of the server that asks. */
export function parseEpoch(said: unknown): number {
  const parsed = epochSchema.min(1).safeParse(said)
  if (parsed.success) return parsed.data
  throw malformed('The request names no epoch.')
}

class Malformed extends Error {}

export function malformed(message: string): Malformed {
  return new Malformed(message)
}

export function isMalformed(error: unknown): error is Malformed {
  return error instanceof Malformed
}

/** Only an EngineError is meant for others; other errors stay in the engine's log. */
export function errorAnswerOf(error: unknown, operation: string, log: Log): ErrorAnswer {
  if (isEngineError(error)) {
    if (error.kind === 'internal') log.error({ err: error, operation }, 'engine operation failed')
    return { error: { kind: error.kind, publicMessage: error.publicMessage } }
  }
  if (isMalformed(error)) return { error: { kind: 'internal', publicMessage: error.message } }
  log.error({ err: error, operation }, 'engine operation failed')
  return { error: { kind: 'internal', publicMessage: 'The engine failed; its log shows why.' } }
}
