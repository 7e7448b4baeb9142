// Reports progress to a client, so that it does not take the work for hung: nothing at first, then every few seconds.

import { type Clock, SECOND } from '../../lib/clock.ts'

const FIRST_MS = 2 * SECOND
const EVERY_MS = 3 * SECOND

/** `elapsedS` never decreases. */
export type SendProgress = (elapsedS: number, message: string) => Promise<void>

/**
 * Runs the work and reports its progress meanwhile. `describe` returns the message, or null for none. Errors while
 * reporting are ignored: the work goes on and returns its own result.
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
      // The work has ended, or the message was not delivered.
    }
  }
}
