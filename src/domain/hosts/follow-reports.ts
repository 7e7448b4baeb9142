// Follows what the engines of all hosts report, across restarts of an engine. A report that was missed meanwhile is the caller's
// to find.

import type { App } from '../../app.ts'
import type { FleetHost } from '../../engine/fleet.ts'
import { SECOND } from '../../lib/clock.ts'

const AGAIN_AFTER_MS = SECOND

/**
 * Until the signal aborts. Never rejects.
 *
 * @param what As the log names it, after "the engine stopped reporting".
 * @param watch Resolves or rejects once the engine reports no more. It is not called while the host is away.
 */
export async function followReports(
  app: App,
  what: string,
  watch: (engine: FleetHost['engine'], until: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  await app.fleet.follow(async (host, until) => {
    while (!until.aborted) {
      try {
        if (host.awaySince === null) await watch(host.engine, until)
      } catch (error) {
        app.log.warn({ err: error }, `the engine stopped reporting ${what}`)
      }
      if (!until.aborted) await app.clock.sleep(AGAIN_AFTER_MS, until).catch(() => {})
    }
  }, signal)
}
