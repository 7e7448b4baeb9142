// Slows a team that goes on calling beyond its limits. A refusal costs the server a credential's check and an audit row,
// and a program in a loop calls again as soon as it is refused, so a hundred such loops would keep the server busy
// (decisions/limits.md). Time is the machine's own, since this protects the machine.

import { setTimeout as delay } from 'node:timers/promises'
import { SECOND, systemClock } from '../../lib/clock.ts'
import { slidingWindow } from '../../lib/concurrency/sliding-window.ts'

/** So many refusals of a team within a second are answered at once. */
export const PROMPT_REFUSALS = 20
const PAUSE_MS = SECOND

export type RefusalPace = {
  /** Resolves when the refusal may be sent: at once, or after a second. `signal`: the call's, which ends the wait. */
  wait(teamId: string, signal: AbortSignal): Promise<void>
}

export function createRefusalPace(
  pause = pauseOf(PAUSE_MS),
  nowMs = () => systemClock.monotonicMs(),
): RefusalPace {
  const prompt = slidingWindow(PROMPT_REFUSALS, SECOND)
  return {
    wait: async (teamId, signal) => {
      const now = nowMs()
      if (prompt.waitMs(teamId, now) > 0) return await pause(signal)
      prompt.record(teamId, now)
    },
  }
}

function pauseOf(ms: number): (signal: AbortSignal) => Promise<void> {
  return async (signal) => await delay(ms, undefined, { signal, ref: false }).catch(() => {})
}
