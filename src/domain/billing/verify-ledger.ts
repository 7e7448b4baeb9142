// Once a day each team's money is added up anew from what it came of (store/verify-ledger.ts). A difference is a bug of ours:
// it is shouted about, and corrected by a person, with a row of its own (operator/credits.ts).

import type { App } from '../../app.ts'
import { DAY } from '../../lib/clock.ts'
import { listTeamsToVerify, saveLedgerVerified, verifyLedgerOfTeam } from '../../store/verify-ledger.ts'

/** A round, which is short, and the next one not far. */
const TEAMS = 20

/** A loop's round. */
export async function verifyLedger({ db, clock, log, observer }: App): Promise<void> {
  const before = new Date(clock.now().getTime() - DAY)
  for (const teamId of await listTeamsToVerify(db, { before, limit: TEAMS })) {
    const differences = await verifyLedgerOfTeam(db, teamId)
    for (const { what, of, recorded, recomputed } of differences) {
      const amounts = { recorded: `${recorded}`, recomputed: `${recomputed}` }
      log.error({ alarm: 'ledger', teamId, what, of, ...amounts }, 'the ledger does not add up')
    }
    observer.ledgerVerified({ differences: differences.length })
    await saveLedgerVerified(db, { teamId, at: clock.now() })
  }
}
