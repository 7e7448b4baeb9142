// Calls in progress that a client of an older protocol revision can cancel: its cancellation is a message of its own
// that names the session and the number of the call. A client of the newest revision closes the stream instead.

import { callerGone } from '../http/errors.ts'

export type CallName = { credentialId: string; sessionId: string | null; id: unknown }

export type Cancellations = {
  /** Aborts `work` when the client cancels the call. Returns a function to call when the work has ended. */
  begin(name: CallName, work: AbortController): () => void
  cancel(name: CallName): void
}

/** Holds one entry for each call in progress. */
export function createCancellations(): Cancellations {
  const underWay = new Map<string, AbortController>()
  return {
    begin(name, work) {
      const key = keyOf(name)
      if (key === null) return () => {}
      underWay.set(key, work)
      return () => {
        if (underWay.get(key) === work) underWay.delete(key)
      }
    },
    cancel(name) {
      const key = keyOf(name)
      if (key !== null) underWay.get(key)?.abort(callerGone())
    },
  }
}

/**
 * Returns null without a session: every client counts its calls from zero, so the number alone could name another
 * client's call.
 */
function keyOf({ credentialId, sessionId, id }: CallName): string | null {
  if (sessionId === null || (typeof id !== 'string' && typeof id !== 'number')) return null
  return JSON.stringify([credentialId, sessionId.slice(0, 500), id])
}
