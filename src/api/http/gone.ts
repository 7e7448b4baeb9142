// When the caller of an exchange is gone, and when the exchange is over.

import type { ServerResponse } from 'node:http'
import type { Writable } from 'node:stream'
import { callerGone } from './errors.ts'

/** Aborts if the caller disconnects before the answer has been written whole. */
export function goneWith(response: ServerResponse): AbortController {
  const gone = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort(callerGone())
  })
  return gone
}

/** Calls back once it is closed; at once if it is, since its caller may have left while a call was let in. */
export function onceClosed(exchange: Writable, callback: () => void): void {
  // One request may contain many calls: Node would warn of a leak from the eleventh on.
  exchange.setMaxListeners(0)
  if (exchange.closed) callback()
  else exchange.once('close', callback)
}
