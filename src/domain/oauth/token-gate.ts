// Limits token requests. Guessing is limited per peer, as with keys, and one program at one address needs only a few
// tokens a minute. The counts are in the memory of each process.

import { limitReached } from '../../contract/errors.ts'
import { type Clock, HOUR, MINUTE, SECOND } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { slidingWindow } from '../../lib/concurrency/sliding-window.ts'
import { createFailedAttempts, type FailedAttempts, peerKey } from '../credentials/failed-attempts.ts'

const TIMES_A_MINUTE = 120
/** The same limit as in domain/allowances/spend.ts, which holds over all processes; this one costs no statement. */
const REGISTRATIONS_AN_HOUR = 100

export type TokenGate = Pick<FailedAttempts, 'failed' | 'succeeded'> & {
  /** Counts a call. Throws `rateLimited`. */
  enter(asked: { peer: string; clientId: string; presented: string }): void
  /** Counts a registration. Throws `rateLimited`. */
  register(peer: string): void
}

export function createTokenGate({ clock, log }: { clock: Clock; log: Log }): TokenGate {
  const attempts = createFailedAttempts({ clock, log })
  const calls = slidingWindow(TIMES_A_MINUTE, MINUTE)
  const registrations = slidingWindow(REGISTRATIONS_AN_HOUR, HOUR)
  return {
    ...attempts,
    register: (peer) => {
      const nowMs = clock.monotonicMs()
      const waitS = Math.ceil(registrations.waitMs(peerKey(peer), nowMs) / SECOND)
      if (waitS > 0) {
        const limit = `${REGISTRATIONS_AN_HOUR} registrations of a client from one place in an hour`
        throw limitReached(limit, waitS)
      }
      registrations.record(peerKey(peer), nowMs)
    },
    enter: ({ peer, clientId, presented }) => {
      attempts.check(peer, presented)
      const who = `${peerKey(peer)} ${clientId}`
      const nowMs = clock.monotonicMs()
      const waitS = Math.ceil(calls.waitMs(who, nowMs) / SECOND)
      if (waitS > 0) throw limitReached(`${TIMES_A_MINUTE} calls a minute`, waitS)
      calls.record(who, nowMs)
    },
  }
}
