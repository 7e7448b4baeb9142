// How often a program may ask for tokens. Guessing is limited for each peer as it is with keys; and one program at one
// place needs no more than a few tokens a minute. Kept in the memory of each process.

import { rateLimited } from '../../contract/errors.ts'
import { type Clock, MINUTE, SECOND } from '../../lib/clock.ts'
import { slidingWindow } from '../../lib/concurrency/sliding-window.ts'
import { createFailedAttempts, type FailedAttempts, peerKey } from '../credentials/failed-attempts.ts'

const TIMES_A_MINUTE = 120

export type TokenGate = Pick<FailedAttempts, 'failed' | 'succeeded'> & {
  /** Counts a call. Throws `rateLimited`. */
  enter(asked: { peer: string; clientId: string; presented: string }): void
}

export function createTokenGate(clock: Clock): TokenGate {
  const attempts = createFailedAttempts(clock)
  const calls = slidingWindow(TIMES_A_MINUTE, MINUTE)
  return {
    ...attempts,
    enter: ({ peer, clientId, presented }) => {
      attempts.check(peer, presented)
      const who = `${peerKey(peer)} ${clientId}`
      const nowMs = clock.monotonicMs()
      const waitS = Math.ceil(calls.waitMs(who, nowMs) / SECOND)
      if (waitS > 0) {
        throw rateLimited(`The limit is ${TIMES_A_MINUTE} calls a minute. Try again in ${waitS} s.`, waitS)
      }
      calls.record(who, nowMs)
    },
  }
}
