// Tells errors that go away by themselves from others.

import { isBerthError } from '@berth/sdk'

const passing = ['connection_failed', 'timed_out', 'unavailable'] as const

/** Whether an error goes away by itself: the network is down, or the server or the engine restarts. */
export function isPassing(error: unknown): boolean {
  return passing.some((code) => isBerthError(error, code))
}
