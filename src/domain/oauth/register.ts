// Programs that register themselves (RFC 7591). Anybody may: what comes of it is a name and redirects, which let nobody in
// before a person has agreed. Programs without a secret only, so there is nothing to keep.

import type { App } from '../../app.ts'
import { clientMetadataSchema } from '../../contract/oauth.ts'
import { newId } from '../../lib/ids.ts'
import { deleteSurplusClients, type OauthClient, saveOauthClient } from '../../store/oauth-clients.ts'
import { spendAllowance } from '../allowances/spend.ts'
import { peerKey } from '../credentials/failed-attempts.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { describeClient } from './describe-client.ts'
import { OauthError } from './errors.ts'

/** Of those that nobody has connected; the oldest make room. */
const MAX_UNUSED = 10_000

/** `peer`: who asks, by the address of the connection. Throws OauthError, and `rateLimited`. */
export async function registerClient(
  app: App,
  { metadata, peer }: { metadata: unknown; peer: string },
): Promise<OauthClient> {
  const parsed = clientMetadataSchema.safeParse(metadata)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    const isRedirect = issue?.path[0] === 'redirect_uris'
    throw new OauthError(
      isRedirect ? 'invalid_redirect_uri' : 'invalid_client_metadata',
      `${issue?.path.join('.')}: ${issue?.message}`,
    )
  }
  const described = describeClient(parsed.data)
  return await inTransaction(app, async (db) => {
    await spendAllowance(app, db, 'client-by-peer', peerKey(peer))
    const client = { ...described, id: newId('oauthClient'), kind: 'registered', freshUntil: null } as const
    await saveOauthClient(db, { ...client, at: app.clock.now() })
    await deleteSurplusClients(db, MAX_UNUSED)
    return client
  })
}
