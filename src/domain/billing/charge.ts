// The background job that charges open meters; the arithmetic is in store/sql/ledger.sql. Reads already include
// uncharged meter time (store/meters.ts); this job only limits how much must be computed per read.

import type { App } from '../../app.ts'
import { chargeOpenMeters } from '../../store/meters.ts'

/** Stopping one of these units waits for the whole batch. */
const BATCH = 1_000

/** One run of the background job. */
export async function chargeMeters({ db, clock }: App): Promise<void> {
  for (;;) {
    // The service time must not jump between reading it and comparing it with stored times.
    const charged = await clock.withStableTime(() => chargeOpenMeters(db, { now: clock.now(), limit: BATCH }))
    if (charged < BATCH) return
  }
}
