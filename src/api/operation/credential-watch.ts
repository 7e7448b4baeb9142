// A stream can outlive its credential, or a membership: it ends within seconds of it (reliability S5, S26).

import type { Caller } from '../../domain/credentials/caller.ts'
import { SECOND } from '../../lib/clock.ts'
import { toAppError } from '../http/errors.ts'
import type { Gate, OperationRequest } from './call.ts'

const RECHECK_EVERY_MS = 4 * SECOND

type Watched = { caller: Caller; request: OperationRequest }

/** Does `work`, and aborts the request once its caller may not make it any more. Throws what `work` throws. */
export async function whileAllowed<T>(gate: Gate, watched: Watched, work: () => Promise<T>): Promise<T> {
  const done = new AbortController()
  const watching = endWithCredential(gate, watched, done.signal)
  try {
    return await work()
  } finally {
    done.abort()
    await watching
  }
}

async function endWithCredential(
  { app, authenticate }: Gate,
  { caller, request }: Watched,
  done: AbortSignal,
): Promise<void> {
  // The team the stream began in, not the one the session acts in by now.
  const presented = { ...request.presented, team: caller.teamId }
  while (!done.aborted && !request.signal.aborted) {
    try {
      await app.clock.sleep(RECHECK_EVERY_MS, done)
      await authenticate(presented, { underWay: true })
    } catch (error) {
      const known = toAppError(error)
      if (!done.aborted && (known.status === 401 || known.status === 403)) request.abort(known)
    }
  }
}
