// Calls under way that a client of the older revisions may cancel: there the wish comes as a message of its own, which nothing but
// the session's name and the number of the call leads to. Of the newest revision it is enough to close the stream.

import { callerGone } from '../http/errors.ts'

export type CallName = { credentialId: string; sessionId: string | null; id: unknown }

export type Cancellations = {
  /** Aborts `work` when its client wants that; returns what to call when it has ended. */
  begin(name: CallName, work: AbortController): () => void
  cancel(name: CallName): void
}

/** As many entries as there are calls under way. */
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

/** Null for what has no session: numbers are counted from nought by every client, and would name another's call. */
function keyOf({ credentialId, sessionId, id }: CallName): string | null {
  if (sessionId === null || (typeof id !== 'string' && typeof id !== 'number')) return null
  return JSON.stringify([credentialId, sessionId.slice(0, 500), id])
}
