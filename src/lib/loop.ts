// Work that repeats until it is told to stop. A failing round is logged and the next one tried: what a loop
// does reads the store anew each time, so nothing is lost with a round.

import type { Clock } from './clock.ts'
import type { Log } from './log.ts'

export type Loop = { name: string; everyMs: number; run: () => Promise<void> }

/** Resolves when the signal aborts and the round under way has ended. Rounds never overlap. */
export async function runLoop(
  loop: Loop,
  { clock, log, signal }: { clock: Clock; log: Log; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    try {
      await loop.run()
    } catch (error) {
      log.error({ loop: loop.name, err: error }, 'a round of a loop failed')
    }
    // An abort ends the pause early; that is no failure.
    await clock.sleep(loop.everyMs, signal).catch(() => {})
  }
}
