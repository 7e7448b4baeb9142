// Operations read a unit, decide, and write only if the unit has not changed since. If it has, they read and decide
// again, a limited number of times.

const ATTEMPTS = 5

/**
 * Runs `attempt`, which begins by reading, until it returns something other than null: null means that the unit was not
 * any more, or not yet, where it was found to be. Returns null after five of those. Throws what the attempt throws.
 */
export async function retryOnConflict<T>(attempt: () => Promise<T | null>): Promise<T | null> {
  for (let left = ATTEMPTS; left > 0; left -= 1) {
    const done = await attempt()
    if (done !== null) return done
  }
  return null
}
