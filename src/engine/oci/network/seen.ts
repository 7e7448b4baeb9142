// What machines reached and were refused, kept until the server takes it: sums of a minute, a limited number for each
// machine. The processes that tell it parse what strangers send, so nothing here trusts them.

import { setTimeout as delay } from 'node:timers/promises'
import { DAY, MINUTE, SECOND } from '../../../lib/clock.ts'
import { type MachineSeen, minuteOf, SEEN_AT_ONCE } from '../../../lib/egress/seen.ts'
import { createTally } from '../../../lib/egress/tally.ts'

const EVERY_MS = SECOND
const BOUNDS = { linesPerMinute: 80, lines: 20_000 } as const
/** A line can be this late: the bytes of a connection are reported when it ends. */
const OLDEST_MS = 7 * DAY

export type Seen = {
  add(lines: MachineSeen[]): void
  /**
   * Calls back with lines until the signal aborts, at most once a second and not before the last call has ended. Of
   * several watchers the newest gets them.
   */
  watch: (onSeen: (lines: MachineSeen[]) => Promise<void>, signal: AbortSignal) => Promise<void>
}

export function createSeen(now: () => Date = () => new Date()): Seen {
  const tally = createTally(BOUNDS)
  let newest: AbortController | null = null
  let added = Promise.withResolvers<void>()

  return {
    add(lines) {
      const minute = minuteOf(now())
      for (const { machine, ...line } of lines) {
        const isOfNow = line.minute <= minute + MINUTE && line.minute > minute - OLDEST_MS
        if (isOfNow) tally.add(machine, line)
      }
      if (tally.size() > 0) added.resolve()
    },

    async watch(onSeen, signal) {
      newest?.abort()
      const own = new AbortController()
      newest = own
      const over = AbortSignal.any([signal, own.signal])
      const ended = new Promise<void>((resolve) => {
        over.addEventListener('abort', () => resolve(), { once: true })
      })
      while (!over.aborted) {
        if (tally.size() === 0) {
          added = Promise.withResolvers()
          await Promise.race([added.promise, ended])
        }
        const lines = over.aborted ? [] : tally.take(SEEN_AT_ONCE)
        if (lines.length > 0) await onSeen(lines)
        await delay(EVERY_MS, undefined, { signal: over }).catch(() => {})
      }
    },
  }
}
