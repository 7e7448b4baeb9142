// An engine of another machine restarts with each new version of its host. What could not be sent meanwhile has not begun
// there, so it is sent again for a while before the caller hears of it.

import { setTimeout as delay } from 'node:timers/promises'
import { SECOND } from '../../lib/clock.ts'
import { errorCodeOf } from '../../lib/error-code.ts'

/** Below the time after which a host is away: from then on its calls are refused before they come here. */
export const RESTARTS_WITHIN_MS = 10 * SECOND
const AGAIN_MS = SECOND / 4

/** What a watch of hosts asks in each round: only an answer at once says that the host is there. */
const probes = new Set(['capacity'])

/**
 * @param waitsMs How long; 0: it is sent once.
 * @param operation A probe is sent once.
 * @param ask Must be repeatable as long as nothing was sent; `mayRepeat` says more.
 * @param mayRepeat Whether a call that failed in this way may be sent again. Default: it was refused the connection.
 */
export async function whileRestarting<T>(
  waitsMs: number,
  operation: string,
  ask: () => Promise<T>,
  { mayRepeat = wasRefused, signal }: { mayRepeat?: (error: unknown) => boolean; signal?: AbortSignal } = {},
): Promise<T> {
  const giveUpMs = performance.now() + (probes.has(operation) ? 0 : waitsMs)
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!mayRepeat(error) || performance.now() >= giveUpMs) throw error
      await delay(AGAIN_MS, undefined, signal && { signal })
    }
  }
}

/** Of calls that failed before there was a connection to send them on. */
const unsent = new WeakSet<Error>()

export const noteUnsent = (error: Error) => void unsent.add(error)

/** No engine listens, or the one that did has not taken the connection. */
function wasRefused(error: unknown): boolean {
  return error instanceof Error && unsent.has(error) && isRefusal(error)
}

/** Of the system, to a connection. */
export const isRefusal = (error: unknown) => ['ECONNREFUSED', 'ECONNRESET'].includes(errorCodeOf(error))
