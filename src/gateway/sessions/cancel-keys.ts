// The keys by which PostgreSQL clients cancel what their open sessions do (tcp/postgres/cancel.ts).

import type { Route } from '../route.ts'

/** The server of a session. */
export type Backend = Pick<Route, 'address' | 'port'>

export type CancelKeys = {
  /** Stores the key of a session, until the returned function is called. */
  add(key: Buffer, backend: Backend): () => void
  /** Returns null if no session has it, or several do, since units choose their keys. */
  find(key: Buffer): Backend | null
}

export function createCancelKeys(): CancelKeys {
  const sessions = new Map<string, Set<{ backend: Backend }>>()
  return {
    add(key, backend) {
      const name = key.toString('hex')
      const session = { backend }
      const sharing = sessions.get(name) ?? new Set()
      sessions.set(name, sharing.add(session))
      return () => {
        sharing.delete(session)
        if (sharing.size === 0 && sessions.get(name) === sharing) sessions.delete(name)
      }
    },
    find(key) {
      const [session, another] = sessions.get(key.toString('hex')) ?? []
      return session === undefined || another !== undefined ? null : session.backend
    },
  }
}
