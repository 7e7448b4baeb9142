// Errors in the form of this interface's REST calls.

import type { ServerResponse } from 'node:http'
import { z } from 'zod'
import { AppError, type FileReason } from '../../contract/errors.ts'
import { PORT_HOST_GONE } from '../../contract/port-host.ts'
import { toAppError } from '../http/errors.ts'
import { sendJson } from '../http/response.ts'

/** Clients know this status as "the sandbox is gone". */
const SANDBOX_GONE = 502

/** A sandbox that does not exist any more, or is paused: nothing inside of it answers. */
export class SandboxGone extends Error {
  readonly sandboxId: string

  constructor(sandboxId: string, message = PORT_HOST_GONE) {
    super(message)
    this.sandboxId = sandboxId
  }
}

export function sendDoorError(response: ServerResponse, error: unknown): void {
  if (error instanceof SandboxGone) {
    const { sandboxId, message } = error
    return sendJson(response, SANDBOX_GONE, { sandboxId, message, code: SANDBOX_GONE })
  }
  const { status, message, details, retryAfterS } = toAppError(error)
  const known = isFull(details) ? INSUFFICIENT_STORAGE : statusOf(status)
  const headers = retryAfterS === null ? {} : { 'retry-after': String(retryAfterS) }
  sendJson(response, known, { code: known, message }, headers)
}

const INSUFFICIENT_STORAGE = 507
const fullSchema = z.object({ reason: z.literal('disk_full' satisfies FileReason) })

function isFull(details: unknown): boolean {
  return fullSchema.safeParse(details).success
}

/** A failed infrastructure is not a sandbox that is gone, and clients know no other use of 502. */
function statusOf(status: number): number {
  return status === SANDBOX_GONE ? 500 : status
}

/** What this interface asks for and Berth does not have: refused, never left out silently. */
export function notSupported(what: string): AppError {
  return new AppError('validation', 400, `${what} is not supported here.`)
}
