// The loop of the ledger. Nobody waits for it: what open meters have counted is in every answer before it is charged
// (store/meters.ts), so it only bounds what is added up on the way.

import type { App } from '../../app.ts'
import { chargeOpenMeters } from '../../store/meters.ts'

/** Whoever stops one of them meanwhile waits for all. */
const BATCH = 1_000

/** A loop's round. */
export async function chargeMeters({ db, clock }: App): Promise<void> {
  for (;;) {
    // The time must not change over between what it is and what it is compared with.
    const charged = await clock.withStableTime(() => chargeOpenMeters(db, { now: clock.now(), limit: BATCH }))
    if (charged < BATCH) return
  }
}
