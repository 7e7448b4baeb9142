// Programs described by a document at the URL that is their id (client identifier metadata documents): control of the
// URL identifies the program. The document is fetched only through the guarded fetch, and cached.

import type { App } from '../../app.ts'
import { clientDocumentSchema } from '../../contract/oauth.ts'
import { DAY, MINUTE, SECOND } from '../../lib/clock.ts'
import type { PublicDocument } from '../../lib/public-fetch.ts'
import { findOauthClient, type OauthClient, saveOauthClient } from '../../store/oauth-clients.ts'
import { spendAllowance } from '../allowances/spend.ts'
import { peerKey } from '../credentials/failed-attempts.ts'
import { describeClient } from './describe-client.ts'
import { OauthError } from './errors.ts'

const KEPT = { atLeastMs: 5 * MINUTE, atMostMs: DAY }
/** How long a cached document stays valid after its expiry if it cannot be fetched. */
const STALE_FOR_MS = DAY
const MAX_ID = 512

/** An https URL with a path, in normal form. */
export function isDocumentUrl(id: string): boolean {
  if (id.length > MAX_ID || !/^https:\/\/[a-z0-9.-]+\/[\x21-\x7e]+$/.test(id) || /[#?\\]/.test(id))
    return false
  // Without a port, and only if normalizing does not change the text.
  return URL.canParse(id) && new URL(id).href === id
}

/**
 * Returns the program of such a URL. `peer`: the address of the client. Throws OauthError `invalid_client` for a
 * document that cannot be read or is invalid, and `rateLimited` for too many new ones.
 */
export async function findDocumentClient(
  app: App,
  { id, peer }: { id: string; peer: string },
): Promise<OauthClient> {
  const known = await findOauthClient(app.db, id)
  const isFreshFor = (client: OauthClient | null, ms: number) =>
    (client?.freshUntil?.getTime() ?? -Infinity) + ms > app.clock.now().getTime()
  if (known && isFreshFor(known, 0)) return known
  try {
    return await app.clientDocuments.run(id, 10 * SECOND, async () => {
      // Another call may have fetched it since this one looked.
      const fetched = await findOauthClient(app.db, id)
      return fetched && isFreshFor(fetched, 0) ? fetched : await fetchClient(app, { id, peer })
    })
  } catch (error) {
    if (known && isFreshFor(known, STALE_FOR_MS)) return known
    throw error
  }
}

async function fetchClient(app: App, { id, peer }: { id: string; peer: string }): Promise<OauthClient> {
  await spendAllowance(app, app.db, 'document-by-peer', peerKey(peer))
  const document = await app.fetchPublic(new URL(id)).catch((error: unknown) => {
    app.log.info({ err: error }, 'OAuth client document could not be read')
    throw new OauthError(
      'invalid_client',
      'The document at the client_id cannot be read. It must be JSON at a public https address.',
    )
  })
  const described = readDocument(id, document)
  const at = app.clock.now()
  const keptMs = Math.min(KEPT.atMostMs, Math.max(KEPT.atLeastMs, (document.maxAgeS ?? 0) * SECOND))
  const client = { ...described, id, kind: 'document', freshUntil: new Date(at.getTime() + keptMs) } as const
  await saveOauthClient(app.db, { ...client, at })
  return client
}

function readDocument(id: string, { body }: PublicDocument) {
  const refused = (message: string) => new OauthError('invalid_client', `The client's document ${message}`)
  let json: unknown
  try {
    json = JSON.parse(body.toString('utf8'))
  } catch {
    throw refused('is no JSON.')
  }
  const parsed = clientDocumentSchema.safeParse(json)
  if (!parsed.success) throw refused('describes no client: client_id and redirect_uris are needed.')
  const document = parsed.data
  if (document.client_id !== id) throw refused('is of another client_id than its URL.')
  const methods = [
    document.token_endpoint_auth_method ?? 'none',
    ...(document.token_endpoint_auth_methods_supported ?? []),
  ]
  if (!methods.includes('none')) throw refused('asks for another client authentication than "none".')
  return describeClient(document)
}
