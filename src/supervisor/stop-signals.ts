// Ctrl-C, SIGTERM and a closed terminal request an orderly stop; a second request forces it.

import { SECOND } from '../lib/clock.ts'

/** npm passes a terminal's Ctrl-C on, so one key press arrives twice. */
const SAME_PRESS_MS = SECOND / 2

/** Aborts on the first signal, and calls `onForce` on a later second one. */
export function listenForStop(onForce: () => void): AbortSignal {
  const stopping = new AbortController()
  let askedAt = 0
  const onSignal = () => {
    if (!stopping.signal.aborted) {
      askedAt = performance.now()
      stopping.abort()
    } else if (performance.now() - askedAt > SAME_PRESS_MS) {
      onForce()
    }
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal)
  return stopping.signal
}
