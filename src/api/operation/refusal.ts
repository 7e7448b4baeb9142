// Handles a call of which a step failed: gives back the rate of a creation that made nothing, closes the audit row
// with the error, and returns the error; a team that keeps calling beyond its limits gets it late.

import type { AppError } from '../../contract/errors.ts'
import { toAppError } from '../http/errors.ts'
import type { Incoming } from './call.ts'
import type { WithRow } from './call-steps.ts'

type Failed = Incoming & Partial<WithRow & { giveBackCreation: () => Promise<void> }>

/** Returns what to tell the caller, unless it has been answered. */
export async function refuseCall(call: Failed, error: unknown): Promise<unknown> {
  const { gate, request, caller, row, giveBackCreation } = call
  if (row === undefined || row.hasEnded()) return error
  // Work that was aborted fails in many ways; the caller's going is what happened.
  const known = toAppError(request.signal.aborted ? request.signal.reason : error)
  if (giveBackCreation && madeNothing(known)) await giveBack(call, giveBackCreation)
  await closeRow(call, row, known)
  if (known.status === 429 && caller) await gate.refusals.wait(caller.teamId, request.signal)
  return known.status === 500 ? error : known
}

/** Whether the call was refused for what it asked. A failure or a disconnect may leave something behind, and cost work. */
function madeNothing({ status }: AppError): boolean {
  return status >= 400 && status < 499
}

/** Never throws: the caller gets the refusal also if this fails. */
async function giveBack({ gate, request }: Failed, giveBackCreation: () => Promise<void>): Promise<void> {
  try {
    await giveBackCreation()
  } catch (error) {
    const { requestId } = request
    gate.app.log.warn({ err: error, requestId }, 'a creation that was refused could not be given back')
  }
}

/** A trail that cannot be written must not hide from the caller why it was refused. */
async function closeRow(
  { gate, request }: Failed,
  row: WithRow['row'],
  { status, code }: AppError,
): Promise<void> {
  try {
    await row.close({ status, errorCode: code })
  } catch (error) {
    const { requestId } = request
    gate.app.log.error({ err: error, requestId, status }, 'an audit row could not be written')
  }
}
