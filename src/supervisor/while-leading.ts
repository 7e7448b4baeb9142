// What there may be once for all servers of a Berth: it runs beside the one that leads, and ends with its process.

import { systemClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { type Service, type SupervisedService, superviseService } from './restart-policy.ts'

export type WhileLeading = { begin: () => void; end: () => Promise<void> }

/** One that cannot start is tried again with the next lead; the log says why. `part` null: there is nothing to do. */
export function whileLeading(part: Service | null, { log }: { log: Log }): WhileLeading {
  const ending = new AbortController()
  let started: Promise<SupervisedService | null> | null = null
  return {
    begin: () => {
      if (!part || ending.signal.aborted) return
      started ??= superviseService(part, { clock: systemClock, log, signal: ending.signal }).catch(
        (error: unknown) => {
          log.error(
            { part: part.name, error: String(error) },
            'service beside the server that leads did not start',
          )
          return null
        },
      )
    },
    end: async () => {
      ending.abort()
      await (await started)?.stop()
    },
  }
}
