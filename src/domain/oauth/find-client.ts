// Finds the program that a client_id identifies.

import type { App } from '../../app.ts'
import { isId } from '../../lib/ids.ts'
import { findOauthClient, type OauthClient } from '../../store/oauth-clients.ts'
import { OauthError } from './errors.ts'
import { findDocumentClient, isDocumentUrl } from './metadata-document.ts'

/** Throws OauthError `invalid_client`, and `rateLimited`. `peer`: the address of the client. */
export async function findClient(app: App, { id, peer }: { id: string; peer: string }): Promise<OauthClient> {
  if (isId('oauthClient', id)) {
    const client = await findOauthClient(app.db, id)
    if (client) return client
  } else if (app.config.clientMetadata && isDocumentUrl(id)) {
    refuseOtherHosts(app, new URL(id).hostname)
    return await findDocumentClient(app, { id, peer })
  }
  throw unknownClient()
}

/** Clients register again after this error; after any other error they keep using an unknown id. */
export function unknownClient(): OauthError {
  return new OauthError('invalid_client', 'This client is unknown; register again.')
}

/** Whether no registered client has this id, or not any more. Always false for the URL of a document. */
export async function isForgotten({ db }: App, id: string): Promise<boolean> {
  return !isDocumentUrl(id) && !(isId('oauthClient', id) && (await findOauthClient(db, id)))
}

/** Checked before a fetch, and also for cached documents, since the list may have changed. */
function refuseOtherHosts({ config: { clientHosts } }: App, host: string): void {
  if (clientHosts.length === 0 || clientHosts.includes(host)) return
  throw new OauthError(
    'invalid_client',
    `Programs described at ${host} cannot be connected here; the operator says which hosts are taken.`,
  )
}
