// How long calls are remembered (BERTH_AUDIT_DAYS). Rows go in small groups, so that nobody waits behind them, and as
// many in a round as can have come since the one before.

import type { App } from '../../app.ts'
import { DAY } from '../../lib/clock.ts'
import { deleteAuditRows } from '../../store/audit.ts'

const ROWS_AT_ONCE = 2000
const GROUPS_A_ROUND = 25

/** A loop's round. */
export async function forgetOldAuditRows({ db, clock, config }: App): Promise<void> {
  if (config.auditDays === 0) return
  const begunBefore = new Date(clock.now().getTime() - config.auditDays * DAY)
  for (let group = 0; group < GROUPS_A_ROUND; group += 1) {
    if ((await deleteAuditRows(db, { begunBefore, limit: ROWS_AT_ONCE })) < ROWS_AT_ONCE) return
  }
}
