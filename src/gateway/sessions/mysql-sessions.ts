// Sessions of MySQL clients by the id that the gateway's greeting gave them (listen/mysql-port.ts).

import type { Route } from '../route.ts'

type Run = Pick<Route, 'unitId' | 'generation'>

export type MysqlSessions = {
  /** Registers the session, until the returned function is called. */
  add(session: { given: number; own: number; run: Run }): () => void
  /**
   * Returns the server's own id of the session. Null if it is not a session of this run, or not an id of the gateway.
   */
  find(given: number, run: Run): number | null
}

export function createMysqlSessions(): MysqlSessions {
  const sessions = new Map<number, { own: number; run: Run }>()
  return {
    add({ given, own, run }) {
      // Another host's gateway, which gives ids too, must not take the place of a session.
      if (sessions.has(given)) return () => {}
      sessions.set(given, { own, run })
      return () => sessions.delete(given)
    },
    find(given, { unitId, generation }) {
      const session = sessions.get(given)
      const isOfRun = session?.run.unitId === unitId && session.run.generation === generation
      return isOfRun ? session.own : null
    },
  }
}
