// Registers programs (RFC 7591). Anyone may register: the result is a name and redirects, which give no access until
// a person agrees. Only programs without a secret, so no secret is stored.

import type { App } from '../../app.ts'
import { clientMetadataSchema } from '../../contract/oauth.ts'
import { newId } from '../../lib/ids.ts'
import { deleteSurplusClients, type OauthClient, saveOauthClient } from '../../store/oauth-clients.ts'
import { spendAllowance } from '../allowances/spend.ts'
import { peerKey } from '../credentials/failed-attempts.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { describeClient } from './describe-client.ts'
import { OauthError } from './errors.ts'

/** The most clients that no person has connected; the oldest are deleted. */
const MAX_UNUSED = 10_000

/** `peer`: the address of the client. Throws OauthError, and `rateLimited`. */
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
