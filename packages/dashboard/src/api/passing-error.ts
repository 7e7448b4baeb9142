// Tells errors that go away by themselves from others.

import { isBerthError } from '@berth/sdk'

/** Whether an error goes by itself: the network's, or that of a server or an engine that is being restarted. */
export function isPassing(error: unknown): boolean {
  return isBerthError(error, 'connection_failed') || isBerthError(error, 'unavailable')
}
