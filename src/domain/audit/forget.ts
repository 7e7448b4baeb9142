// Deletes audit rows older than BERTH_AUDIT_DAYS. They are deleted in small batches, so that other statements do not
// wait, and each run deletes at least as many rows as can have been added since the last.

import type { App } from '../../app.ts'
import { DAY } from '../../lib/clock.ts'
import { deleteAuditRows } from '../../store/audit.ts'

const ROWS_AT_ONCE = 2000
const GROUPS_A_ROUND = 25

/** One run of the background job. */
export async function forgetOldAuditRows({ db, clock, config }: App): Promise<void> {
  if (config.auditDays === 0) return
  const begunBefore = new Date(clock.now().getTime() - config.auditDays * DAY)
  for (let group = 0; group < GROUPS_A_ROUND; group += 1) {
    if ((await deleteAuditRows(db, { begunBefore, limit: ROWS_AT_ONCE })) < ROWS_AT_ONCE) return
  }
}
