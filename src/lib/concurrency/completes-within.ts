// Waiting for work, but not for ever. It goes on by itself when it takes longer.

import type { Clock } from '../clock.ts'

/** True: the work is done. False: the time was up first. Throws what the work throws until then. */
export async function completesWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  // A failure after the time is up is nobody's here; without this it would end the process.
  work.catch(() => {})
  const done = new AbortController()
  const late = clock.sleep(Math.max(0, ms), done.signal).then(
    () => false,
    () => false,
  )
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    done.abort()
  }
}
