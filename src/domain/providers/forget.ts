// Links and sign-ins that can be used no more: anybody can ask for them, so they must not pile up.

import type { App } from '../../app.ts'
import { DAY } from '../../lib/clock.ts'
import { deleteProviderSignIns } from '../../store/identities.ts'
import { deleteSignInLinks } from '../../store/sessions.ts'

/** A loop's round. */
export async function forgetSignIns({ db, clock }: App): Promise<void> {
  const expiredBefore = new Date(clock.now().getTime() - DAY)
  await deleteSignInLinks(db, { expiredBefore })
  await deleteProviderSignIns(db, { expiredBefore })
}
