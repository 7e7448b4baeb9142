// A stream can outlive its credential or its caller's membership, and a command can outlive a change of policy. Each
// then ends within seconds (reliability S5, S26).

import type { Caller } from '../../domain/credentials/caller.ts'
import { refuseStoppedByLimit } from '../../domain/units/admission/stop-beyond-limits.ts'
import { NOT_NEEDED, SECOND } from '../../lib/clock.ts'
import { toAppError } from '../http/errors.ts'
import type { Gate, OperationRequest } from './call.ts'

const RECHECK_EVERY_MS = 4 * SECOND

/** `commandIn`: the unit that a command runs in; null for every other call. */
type Watched = { caller: Caller; request: OperationRequest; commandIn: string | null }

const ending = [401, 402, 403]

/** Does `work`, and aborts the request once its caller may not make it any more. Throws what `work` throws. */
export async function whileAllowed<T>(gate: Gate, watched: Watched, work: () => Promise<T>): Promise<T> {
  const done = new AbortController()
  const watching = endWithCredential(gate, watched, done.signal)
  try {
    return await work()
  } finally {
    done.abort(NOT_NEEDED)
    await watching
  }
}

async function endWithCredential(
  { app, authenticate }: Gate,
  { caller, request, commandIn }: Watched,
  done: AbortSignal,
): Promise<void> {
  // The team the stream began in, not the one the session acts in by now.
  const presented = { ...request.presented, team: caller.teamId }
  while (!done.aborted && !request.signal.aborted) {
    try {
      await app.clock.sleep(RECHECK_EVERY_MS, done)
      await authenticate(presented, { underWay: true })
      // The unit itself has ten seconds to end.
      if (commandIn !== null) await refuseStoppedByLimit(app, caller, commandIn)
    } catch (error) {
      if (done.aborted) return
      const known = toAppError(error)
      if (ending.includes(known.status)) request.abort(known)
    }
  }
}
