// A call of the control plane: who calls, what its path and query say, and its body, which is read once the rate is spent.

import { type AppError, unavailable } from '../../../contract/errors.ts'
import { jsonBody, readBody } from '../../http/body.ts'
import { payloadTooLarge, toAppError } from '../../http/errors.ts'
import { z } from 'zod'
import { runOperation, type Asked, type Sender } from '../run.ts'
import type { Arrived } from '../sandbox-call.ts'

export type ControlCall = Arrived & { sender: Sender; query: URLSearchParams }

/** Null: an answer without a body. */
export type ControlAnswer = { status: number; body: unknown; headers?: Record<string, string> }

export type ControlRoute = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** With `{id}` in place of what it is about, and `{build}` of one of its builds. */
  path: string
  serve: (call: ControlCall, id: string, buildId: string) => Promise<ControlAnswer>
}

/** Of all bodies here: metadata and the environment are the largest parts. */
const BODY_BYTES = 1024 * 1024
const anyBody = {
  ...jsonBody(z.unknown()),
  maxBytes: BODY_BYTES,
  tooLarge: () => payloadTooLarge(BODY_BYTES),
}

/** An absent body is `{}`. */
export async function readJson<S extends z.ZodType>(
  { request }: Pick<ControlCall, 'request'>,
  schema: S,
): Promise<z.output<S>> {
  return jsonBody(schema, { isOptional: true }).parse(await readBody(request, anyBody))
}

export async function perform(call: ControlCall, asked: Omit<Asked, 'signal'>): Promise<unknown> {
  const { operations, sender, signal } = call
  return await runOperation(operations, sender, { ...asked, signal })
}

/** Clients take a 409 for "paused already": one that has another reason is told as a wait. */
export function asBusy(error: unknown): AppError {
  const known = toAppError(error)
  return known.status === 409 ? unavailable(known.message, BUSY_RETRY_S) : known
}

const BUSY_RETRY_S = 1
