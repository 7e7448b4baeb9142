// KILL by the session id in the gateway's greeting. The server's id is not known at that time, so clients get an id
// of the gateway (mysql-port.ts), and a KILL is sent to the server with its own id. The gateway's ids are above any
// server's, so an id from `connection_id()` is passed on unchanged.

import { followCommands } from './packets.ts'
import type { MysqlSessions } from '../../sessions/mysql-sessions.ts'
import type { Route } from '../../route.ts'

type Run = Pick<Route, 'unitId' | 'generation'>

/** Passes on what a client sends in its session, with the gateway's ids replaced. */
export function followKills(sessions: MysqlSessions, run: Run): ReturnType<typeof followCommands> {
  const longest = { mostBytes: MAX_KILL_BYTES }
  return followCommands(longest, (command) => translateKill(command, (given) => sessions.find(given, run)))
}

/** A statement with comments, as programs send it. A longer one is not a KILL. */
const MAX_KILL_BYTES = 512
const QUERY = 0x03
const PROCESS_KILL = 0x0c
const PREPARE = 0x16

/** Returns null for any other command, or an unknown id. */
export function translateKill(command: Buffer, ownOf: (given: number) => number | null): Buffer | null {
  switch (command[0]) {
    case PROCESS_KILL: {
      const own = command.length === 5 ? ownOf(command.readUInt32LE(1)) : null
      if (own === null) return null
      const translated = Buffer.from(command)
      translated.writeUInt32LE(own, 1)
      return translated
    }
    case QUERY:
    case PREPARE: {
      const [, before = '', id = '', after = ''] = statement.exec(command.toString('latin1', 1)) ?? []
      const own = id === '' ? null : ownOf(Number(id))
      if (own === null) return null
      return Buffer.concat([command.subarray(0, 1), Buffer.from(`${before}${own}${after}`, 'latin1')])
    }
    default:
      return null
  }
}

/** White space, or a comment that is not executed. Each text matches in one way only. */
const gap = String.raw`(?:\s|/\*(?!M?!)[^*]*\*+(?:[^/*][^*]*\*+)*/)`
const what = '(?:QUERY|CONNECTION)'
const executed = String.raw`/\*M?!(?:\d{5,6})?\s+${what}\s*\*/`
/** `KILL QUERY ID` takes the id of a query, and `KILL USER` a name: neither matches. */
const statement = new RegExp(
  `^(${gap}*KILL(?:${gap}+(?:HARD|SOFT))?(?:${gap}+${what}${gap}+|${gap}*${executed}${gap}*|${gap}+))(\\d{10})(${gap}*;?${gap}*)$`,
  'i',
)
