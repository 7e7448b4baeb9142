// Keeps what units reached and were refused, as the engine tells it, for a week (decisions/egress.md).

import type { App } from '../../app.ts'
import { isEngineError } from '../../engine/errors.ts'
import type { FleetHost } from '../../engine/fleet.ts'
import { DAY, SECOND } from '../../lib/clock.ts'
import type { MachineSeen } from '../../lib/egress/seen.ts'
import { addToEgressLog, deleteEgressLog, trimEgressLog } from '../../store/egress-log.ts'

const KEPT_MS = 7 * DAY
/** Of one unit; the oldest go first. */
const MAX_LINES = 10_000
const TRIM_AFTER_LINES = 1000
const AGAIN_MS = SECOND

/** Follows all engines until the signal aborts, across restarts of an engine. */
export async function watchEgress(app: App, signal: AbortSignal): Promise<void> {
  /** How many lines each unit has got since its oldest were last deleted. */
  const grown = new Map<string, number>()
  const follow = async ({ id: hostId, engine }: FleetHost, until: AbortSignal) => {
    while (!until.aborted) {
      try {
        await engine.watchEgress(async (lines) => await keep(app, { hostId, lines }, grown), until)
      } catch (error) {
        // Of a host that is away the log has a line already, and this is tried every second.
        const level = isEngineError(error, 'engine_away') ? 'debug' : 'warn'
        app.log[level]({ err: error }, 'the engine stopped telling what units reach')
      }
      if (!until.aborted) await app.clock.sleep(AGAIN_MS, until).catch(() => {})
    }
  }
  await app.fleet.follow(follow, signal)
}

/**
 * Lines that cannot be written are lost: after a connection to the database has broken it is unknown whether they were,
 * and a sum that counts them twice would be wrong. The engine keeps the next ones meanwhile.
 */
async function keep(
  app: App,
  told: { hostId: string; lines: MachineSeen[] },
  grown: Map<string, number>,
): Promise<void> {
  try {
    for (const { unitId, added } of await addToEgressLog(app.db, told)) {
      const lately = (grown.get(unitId) ?? 0) + added
      grown.set(unitId, lately)
      if (lately < TRIM_AFTER_LINES) continue
      grown.delete(unitId)
      await trimEgressLog(app.db, { unitId, most: MAX_LINES })
    }
  } catch (error) {
    app.log.warn({ err: error, lines: told.lines.length }, 'what units reached could not be kept')
  }
}

const LINES_AT_ONCE = 5000
const GROUPS_A_ROUND = 20

/** One run of the background job. */
export async function forgetOldEgressLog({ db, clock }: App): Promise<void> {
  const before = new Date(clock.now().getTime() - KEPT_MS)
  for (let group = 0; group < GROUPS_A_ROUND; group += 1) {
    if ((await deleteEgressLog(db, { before, limit: LINES_AT_ONCE })) < LINES_AT_ONCE) return
  }
}
