// Reads a program's description: text that is safe to show, and redirects that an answer may be sent to.

import { cleanLine } from '../../contract/fields.ts'
import type { ClientMetadata } from '../../contract/oauth.ts'
import { OauthError } from './errors.ts'
import { readRedirect } from './redirects.ts'

const MAX_NAME = 80
const MAX_REDIRECTS = 10

type Description = { name: string | null; uri: string | null; icon: string | null; redirectUris: string[] }

/** Throws `invalid_redirect_uri` if no usable redirect is left; programs list several kinds at once. */
export function describeClient(metadata: ClientMetadata): Description {
  const redirectUris = [...new Set(metadata.redirect_uris)].filter((uri) => readRedirect(uri) !== null)
  if (redirectUris.length === 0) {
    throw new OauthError(
      'invalid_redirect_uri',
      'A redirect URI is an https URL, http to localhost, 127.0.0.1 or [::1], or has an app scheme (cursor:). ' +
        'It has no fragment, user or wildcard.',
    )
  }
  return {
    name: cleanLine(metadata.client_name ?? '', MAX_NAME) || null,
    uri: httpsOrNull(metadata.client_uri),
    icon: httpsOrNull(metadata.logo_uri),
    redirectUris: redirectUris.slice(0, MAX_REDIRECTS),
  }
}

/** It is shown as text, and never fetched. */
function httpsOrNull(uri: string | null | undefined): string | null {
  return uri && readRedirect(uri)?.kind === 'web' ? uri : null
}
