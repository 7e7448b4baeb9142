// Reads already include uncharged meter time (store/meters.ts); this job only limits how much must be computed per
// read.

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
