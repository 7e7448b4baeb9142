// Recomputes each team's money once a day from the ledger's rows (store/verify-ledger.ts). A difference is a bug: it
// is logged as an alarm, and a person corrects it with a row of its own (operator/credits.ts).

import type { App } from '../../app.ts'
import { DAY } from '../../lib/clock.ts'
import { listTeamsToVerify, saveLedgerVerified, verifyLedgerOfTeam } from '../../store/verify-ledger.ts'

/** Per run: a run is short, and the next one follows soon. */
const TEAMS = 20

/** One run of the background job. */
export async function verifyLedger({ db, clock, log, observer }: App): Promise<void> {
  const before = new Date(clock.now().getTime() - DAY)
  for (const teamId of await listTeamsToVerify(db, { before, limit: TEAMS })) {
    const differences = await verifyLedgerOfTeam(db, teamId)
    for (const { what, of, recorded, recomputed } of differences) {
      const amounts = { recorded: `${recorded}`, recomputed: `${recomputed}` }
      log.error({ alarm: 'ledger', teamId, what, of, ...amounts }, 'ledger sums differ')
    }
    observer.ledgerVerified({ differences: differences.length })
    await saveLedgerVerified(db, { teamId, at: clock.now() })
  }
}
