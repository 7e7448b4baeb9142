// Telling whoever waits how long work goes, so that no client takes it for hung: not at all for what is quick, then every few
// seconds.

import { type Clock, SECOND } from '../../lib/clock.ts'

const FIRST_MS = 2 * SECOND
const EVERY_MS = 3 * SECOND

/** `elapsedS` only ever grows. */
export type SendProgress = (elapsedS: number, message: string) => Promise<void>

/**
 * Does the work, and tells how it goes while it lasts. `describe` says it in words, null where there are none. Troubles of the
 * telling are nobody's: the work goes on, and ends as it would.
 */
export async function whileReporting<T>(
  clock: Clock,
  { send, describe }: { send: SendProgress; describe: () => Promise<string | null> },
  work: () => Promise<T>,
): Promise<T> {
  const done = new AbortController()
  const telling = tell(clock, done.signal, async (elapsedS) => {
    const message = await describe()
    await send(elapsedS, message === null || message === '' ? `${elapsedS} s` : `${message} (${elapsedS} s)`)
  })
  try {
    return await work()
  } finally {
    done.abort()
    await telling
  }
}

async function tell(
  clock: Clock,
  done: AbortSignal,
  tick: (elapsedS: number) => Promise<void>,
): Promise<void> {
  const startedMs = clock.monotonicMs()
  for (let pauseMs = FIRST_MS; !done.aborted; pauseMs = EVERY_MS) {
    try {
      await clock.sleep(pauseMs, done)
      await tick(Math.round((clock.monotonicMs() - startedMs) / SECOND))
    } catch {
      // The work is done, or the message did not get through.
    }
  }
}
