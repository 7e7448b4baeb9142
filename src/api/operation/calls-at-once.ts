// How many calls of one team, and of all, are under way at once (decision 84). A call counts until its answer has left:
// what a command has printed is held in memory until then, however slowly the caller reads.

import type { App } from '../../app.ts'
import { rateLimited, unavailable } from '../../contract/errors.ts'
import { tellBoundMet } from '../../lib/bound-met.ts'
import { createConcurrencyLimit } from '../../lib/concurrency/concurrency-limit.ts'

export type CallKind = 'command' | 'stream' | 'call'

export type CallsAtOnce = {
  /** Returns what to call, once, when the answer has left. Throws `rateLimited` or `unavailable` where there is no room. */
  begin(kind: CallKind, teamId: string): () => void
}

/** For all teams together, so many times what one may have. */
const TEAMS = 4
const RETRY_AFTER_S = 1

export function createCallsAtOnce(app: Pick<App, 'config' | 'log' | 'clock'>): CallsAtOnce {
  const each: Record<CallKind, number> = {
    // Of each, 1 MB of either stream is held; on the host it is a process or two.
    command: app.config.commandsAtOnce,
    stream: 250,
    call: 1000,
  }
  const open = (kind: CallKind) => createConcurrencyLimit(TEAMS * each[kind], each[kind])
  const limits = { command: open('command'), stream: open('stream'), call: open('call') }
  const words: Record<CallKind, string> = { command: 'commands', stream: 'streams', call: 'calls' }

  return {
    begin(kind, teamId) {
      const limit = limits[kind]
      if (limit.tryAcquire(teamId)) return () => limit.release(teamId)
      tellBoundMet(app, { bound: `${words[kind]} at once`, by: teamId })
      if (limit.count(teamId) >= each[kind]) {
        const most = `The team has ${each[kind]} ${words[kind]} under way, and no more may be at once`
        throw rateLimited(`${most}; try again when one of them has ended.`, RETRY_AFTER_S)
      }
      throw unavailable(`Too many ${words[kind]} are under way; try again in a moment.`, RETRY_AFTER_S)
    },
  }
}
