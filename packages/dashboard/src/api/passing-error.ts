// Tells errors that go away by themselves from others.

import { isBerthError } from '@berth/sdk'

/** Whether an error goes away by itself: the network is down, or the server or the engine restarts. */
export function isPassing(error: unknown): boolean {
  return isBerthError(error, 'connection_failed') || isBerthError(error, 'unavailable')
}
