// Deletes what anyone can create without signing in: requests and codes that have ended, programs unused for a month,
// and expired tokens.

import type { App } from '../../app.ts'
import { DAY, HOUR } from '../../lib/clock.ts'
import { deleteOauthClients } from '../../store/oauth-clients.ts'
import { deleteEndedTokens } from '../../store/oauth-families.ts'
import { deleteExpiredRequests } from '../../store/oauth-requests.ts'
import { REFRESH_LIVES_MS } from './families.ts'

/** One run of the background job. */
export async function forgetAuthorizations({ db, clock }: App): Promise<void> {
  const ago = (ms: number) => new Date(clock.now().getTime() - ms)
  // A code that is reused within an hour still ends the tokens it made.
  await deleteExpiredRequests(db, { requestsBefore: ago(0), codesBefore: ago(HOUR) })
  await deleteOauthClients(db, { unusedSince: ago(REFRESH_LIVES_MS + DAY) })
  await deleteEndedTokens(db, { endedBefore: ago(DAY) })
}
