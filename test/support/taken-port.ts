// Listening again on a port that was just let go. A test that looks for a free port meanwhile listens on each for an instant.

import { setTimeout as delay } from 'node:timers/promises'
import { isPortTaken } from '../../src/lib/free-port.ts'

const MAX_TRIES = 50

/** Tries again while the port is taken, for a second. */
export async function whenFree<T>(listen: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await listen()
    } catch (error) {
      if (!isPortTaken(error) || tries === MAX_TRIES) throw error
      await delay(20)
    }
  }
}
