// Waits for work for a limited time. The work goes on if it takes longer.

import { type Clock, NOT_NEEDED } from '../clock.ts'

/** Returns true if the work completed, false on a timeout. Throws the work's error if that comes first. */
export async function completesWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  // A failure after the timeout is not handled here; without this it would end the process.
  work.catch(() => {})
  const done = new AbortController()
  const late = clock.sleep(Math.max(0, ms), done.signal).then(
    () => false,
    () => false,
  )
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    done.abort(NOT_NEEDED)
  }
}
