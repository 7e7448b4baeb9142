// How long each step of an operation takes, so that one that was slow says where its time went.

import { type Clock, SECOND } from './clock.ts'
import type { Log } from './log.ts'

/** Longer than an operation takes that waits for nothing, on a host that is busy. */
export const SLOW_MS = 5 * SECOND

export type StepTimes = {
  /** Does the work and counts its time for the step, also if it fails. Steps may overlap and contain others. */
  measure<T>(step: string, work: () => Promise<T>): Promise<T>
  /** Logs one line if the whole took longer than SLOW_MS. Later work is not counted. */
  end(log: Log, message: string, fields: Record<string, string>): void
}

export function timeSteps(clock: Pick<Clock, 'monotonicMs'>): StepTimes {
  const begunMs = clock.monotonicMs()
  /** Null once the operation has ended. */
  let times: Map<string, number> | null = new Map()
  return {
    async measure(step, work) {
      const stepBegunMs = clock.monotonicMs()
      try {
        return await work()
      } finally {
        // A step that is repeated has one sum, so that the line stays short.
        times?.set(step, (times.get(step) ?? 0) + clock.monotonicMs() - stepBegunMs)
      }
    },
    end(log, message, fields) {
      const totalMs = Math.round(clock.monotonicMs() - begunMs)
      if (times !== null && totalMs > SLOW_MS) {
        const stepsMs = Object.fromEntries([...times].map(([step, ms]) => [step, Math.round(ms)]))
        log.warn({ ...fields, totalMs, stepsMs }, message)
      }
      times = null
    },
  }
}
