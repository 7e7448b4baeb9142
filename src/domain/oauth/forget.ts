// What anybody can begin must not pile up: requests and codes that have ended, programs that nobody has used for a month,
// and tokens that nothing can come of.

import type { App } from '../../app.ts'
import { DAY, HOUR } from '../../lib/clock.ts'
import { deleteOauthClients } from '../../store/oauth-clients.ts'
import { deleteEndedTokens } from '../../store/oauth-families.ts'
import { deleteExpiredRequests } from '../../store/oauth-requests.ts'
import { REFRESH_LIVES_MS } from './families.ts'

/** A loop's round. */
export async function forgetAuthorizations({ db, clock }: App): Promise<void> {
  const ago = (ms: number) => new Date(clock.now().getTime() - ms)
  // A code that comes again within an hour still ends what it has made.
  await deleteExpiredRequests(db, { requestsBefore: ago(0), codesBefore: ago(HOUR) })
  await deleteOauthClients(db, { unusedSince: ago(REFRESH_LIVES_MS + DAY) })
  await deleteEndedTokens(db, { endedBefore: ago(DAY) })
}
