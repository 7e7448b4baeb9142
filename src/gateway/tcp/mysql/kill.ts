// KILL by the id that the gateway's own greeting gave a session. The server's id is not known that early, so clients
// learn one of the gateway's (mysql-port.ts), and what they kill by it is said to the server by its own id. Ids of the
// gateway begin where those of no server get, so that one that was asked for by `connection_id()` passes as it is.

import { followCommands } from './packets.ts'
import type { Route } from '../../routing/route.ts'

export type MysqlSessions = {
  /** The session's, until the function it answers is called. */
  add(session: { given: number; own: number; run: Route }): () => void
  /** The server's own id of it. Null: it is no session of this run, or was not given by the gateway. */
  find(given: number, run: Route): number | null
}

export function createMysqlSessions(): MysqlSessions {
  const sessions = new Map<number, { own: number; run: Route }>()
  return {
    add({ given, own, run }) {
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

/** What a client says in its session, as its server is to hear it: the same, but for ids the gateway has given. */
export function followKills(sessions: MysqlSessions, run: Route): ReturnType<typeof followCommands> {
  const longest = { mostBytes: MAX_KILL_BYTES }
  return followCommands(longest, (command) => translateKill(command, (given) => sessions.find(given, run)))
}

/** A statement with comments in it, as programs send it. A longer one is none of theirs. */
const MAX_KILL_BYTES = 512
const QUERY = 0x03
const PROCESS_KILL = 0x0c
const PREPARE = 0x16

/** Null: it is something else, or kills by an id that is not known. */
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

/** White space, or a comment that is not executed. Each text can be read as some of these in one way only. */
const gap = String.raw`(?:\s|/\*(?!M?!)[^*]*\*+(?:[^/*][^*]*\*+)*/)`
const what = '(?:QUERY|CONNECTION)'
const executed = String.raw`/\*M?!(?:\d{5,6})?\s+${what}\s*\*/`
/** `KILL QUERY ID` is by the number of a query, and `KILL USER` by a name: neither is this. */
const statement = new RegExp(
  `^(${gap}*KILL(?:${gap}+(?:HARD|SOFT))?(?:${gap}+${what}${gap}+|${gap}*${executed}${gap}*|${gap}+))(\\d{10})(${gap}*;?${gap}*)$`,
  'i',
)
