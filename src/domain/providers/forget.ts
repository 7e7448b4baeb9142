// Deletes expired links and sign-ins, since anyone can create them.

import type { App } from '../../app.ts'
import { DAY } from '../../lib/clock.ts'
import { deleteProviderSignIns } from '../../store/identities.ts'
import { deleteSignInLinks } from '../../store/sessions.ts'

/** One run of the background job. */
export async function forgetSignIns({ db, clock }: App): Promise<void> {
  const expiredBefore = new Date(clock.now().getTime() - DAY)
  await deleteSignInLinks(db, { expiredBefore })
  await deleteProviderSignIns(db, { expiredBefore })
}
