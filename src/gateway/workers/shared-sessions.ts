// Sessions that a visitor may name on another connection, at whichever gateway that arrives: those of this gateway are
// published, and those of others found like its own.

import type { CancelKeys } from '../sessions/cancel-keys.ts'
import type { MysqlSessions } from '../sessions/mysql-sessions.ts'
import type { Peers } from './peers.ts'

/** The same keys, and those of sessions at other gateways. */
export function shareCancelKeys(keys: CancelKeys, peers: Peers): CancelKeys {
  peers.follow('cancelKey', ({ key, address, port }) =>
    keys.add(Buffer.from(key, 'base64'), { address, port }),
  )
  return {
    add(key, { address, port }) {
      const forget = keys.add(key, { address, port })
      const withdraw = peers.publish({ kind: 'cancelKey', key: key.toString('base64'), address, port })
      return () => {
        forget()
        withdraw()
      }
    },
    find: (key) => keys.find(key),
  }
}

/** The same sessions, and those at other gateways. */
export function shareMysqlSessions(sessions: MysqlSessions, peers: Peers): MysqlSessions {
  peers.follow('mysqlSession', ({ given, own, unitId, generation }) =>
    sessions.add({ given, own, run: { unitId, generation } }),
  )
  return {
    add({ given, own, run }) {
      const { unitId, generation } = run
      const forget = sessions.add({ given, own, run })
      const withdraw = peers.publish({ kind: 'mysqlSession', given, own, unitId, generation })
      return () => {
        forget()
        withdraw()
      }
    },
    find: (given, run) => sessions.find(given, run),
  }
}
