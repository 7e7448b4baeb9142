// Limits how many calls of one team, and of all teams, are in progress at once (decisions/limits.md). A call counts until
// its answer has been sent, because a command's output is held in memory until then, however slowly the client reads.

import type { App } from '../../app.ts'
import { rateLimited, unavailable } from '../../contract/errors.ts'
import { logLimitReached } from '../../lib/limit-reached.ts'
import { createConcurrencyLimit } from '../../lib/concurrency/concurrency-limit.ts'

export type CallKind = 'command' | 'stream' | 'call'

export type CallsAtOnce = {
  /**
   * Returns a function to call once when the answer has been sent. Throws `rateLimited` (the team's limit) or
   * `unavailable` (the limit of all teams).
   */
  begin(kind: CallKind, teamId: string): () => void
}

/** The limit of all teams together is this many times the limit of one team. */
const TEAMS = 4
const RETRY_AFTER_S = 1

export function createCallsAtOnce(app: Pick<App, 'config' | 'log' | 'clock'>): CallsAtOnce {
  const each: Record<CallKind, number> = {
    // A command holds up to 1 MB of each output stream here, and one or two processes on the host.
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
      logLimitReached(app, { bound: `${words[kind]} at once`, by: teamId })
      if (limit.count(teamId) >= each[kind]) {
        const most = `The team has ${each[kind]} ${words[kind]} in progress, which is the limit`
        throw rateLimited(`${most}; try again when one of them has ended.`, RETRY_AFTER_S)
      }
      throw unavailable(
        `The service has too many ${words[kind]} in progress; try again in a few seconds.`,
        RETRY_AFTER_S,
      )
    },
  }
}
