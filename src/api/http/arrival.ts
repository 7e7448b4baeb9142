// Limits how long a request may take to arrive: a minute, unless its operation reads the body piece by piece.

import type { IncomingMessage } from 'node:http'
import { limits } from '../../contract/limits.ts'
import { MINUTE } from '../../lib/clock.ts'
import { hasBody } from './body.ts'
import { refuseMalformed } from './response.ts'

const ARRIVAL_MS = MINUTE

/** Of the longest; the operation has a bound of its own, which strikes first. */
export const longestArrivalMs = limits.archiveMs + MINUTE

/** Ends the connection of a request that takes longer than others may. */
export function boundArrival(request: IncomingMessage): void {
  // A request without a body has arrived with its head.
  if (request.complete || !hasBody(request)) return
  const late = setTimeout(() => {
    const tooLate = Object.assign(new Error('the request came too late'), {
      code: 'ERR_HTTP_REQUEST_TIMEOUT',
    })
    if (!request.complete) refuseMalformed(tooLate, request.socket)
  }, ARRIVAL_MS)
  for (const over of ['end', 'close']) request.once(over, () => clearTimeout(late))
}
