// Handles a program's request to be connected (RFC 6749 4.1.1, RFC 7636, RFC 8707). Until the redirect is verified,
// errors are shown to the person; after that they are sent to the program.

import type { App } from '../../app.ts'
import { MINUTE } from '../../lib/clock.ts'
import { type OauthClient, touchOauthClient } from '../../store/oauth-clients.ts'
import { insertOauthRequest } from '../../store/oauth-requests.ts'
import { spendAllowance } from '../allowances/spend.ts'
import { peerKey } from '../credentials/failed-attempts.ts'
import { newToken } from '../credentials/token.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { OauthError } from './errors.ts'
import { findClient } from './find-client.ts'
import { redirectMatches, withAnswer } from './redirects.ts'
import { isOurResource } from './resource.ts'

export const REQUEST_LIVES_MS = 15 * MINUTE

export type Begun =
  | { kind: 'begun'; ticket: string }
  /** An error for the program. `redirectUri` is one that it registered. */
  | { kind: 'refused'; redirectUri: string; redirectTo: string; message: string }

type Refusal = { error: string; message: string }

/** `peer`: the address of the client. Throws OauthError if nothing may be sent to the program. */
export async function beginRequest(
  app: App,
  { query, peer }: { query: URLSearchParams; peer: string },
): Promise<Begun> {
  const one = (name: string) => oneOf(query, name)
  // Checked first: two parsers could read a repeated parameter differently.
  for (const name of new Set(query.keys())) one(name)
  const client = await findClient(app, { id: needed(one('client_id'), 'client_id'), peer })
  const redirectUri = redirectOf(client, one('redirect_uri'))
  const state = one('state')
  const refusal = judge(app, one)
  if (refusal) {
    const { error, message } = refusal
    const fields = { error, error_description: message, state: shortState(state), iss: app.config.publicUrl }
    return { kind: 'refused', redirectUri, redirectTo: withAnswer(redirectUri, fields), message }
  }
  const codeChallenge = one('code_challenge') ?? ''
  const { token, prefix, hash } = newToken('consent')
  await inTransaction(app, async (db) => {
    const at = app.clock.now()
    const expiresAt = new Date(at.getTime() + REQUEST_LIVES_MS)
    await spendAllowance(app, db, 'request-by-peer', peerKey(peer))
    await touchOauthClient(db, { id: client.id, at })
    const request = { prefix, hash, clientId: client.id, redirectUri, state, codeChallenge, expiresAt }
    await insertOauthRequest(db, request)
  })
  return { kind: 'begun', ticket: token }
}

function oneOf(query: URLSearchParams, name: string): string | null {
  const [first, ...more] = query.getAll(name)
  if (more.length > 0)
    throw new OauthError('invalid_request', `${name.slice(0, 40)} is there more than once.`)
  return first === undefined || first === '' ? null : first
}

function needed(value: string | null, name: string): string {
  if (value === null) throw new OauthError('invalid_request', `${name} is missing.`)
  return value
}

/** Returns the requested redirect; a client with a single one need not name it. */
function redirectOf({ redirectUris }: OauthClient, asked: string | null): string {
  const [only, ...others] = redirectUris
  const meant = asked ?? (others.length === 0 ? only : undefined)
  if (meant === undefined) throw new OauthError('invalid_request', 'redirect_uri is missing.')
  if (redirectUris.some((registered) => redirectMatches(registered, meant))) return meant
  throw new OauthError('invalid_request', 'The redirect_uri is not registered by the client.')
}

const MAX_STATE = 2048
/** A state that is too long is not returned, because it is the error. */
const shortState = (state: string | null) => (state !== null && isState(state) ? state : null)
const isState = (state: string) => /^[\x20-\x7e]+$/.test(state) && state.length <= MAX_STATE

/** Returns the error of a request whose redirect is verified; null if it is valid. */
function judge({ config }: App, one: (name: string) => string | null): Refusal | null {
  const refuse = (error: string, message: string) => ({ error, message })
  const state = one('state')
  const scopes = one('scope')?.split(' ') ?? ['units']
  if (one('request') !== null) return refuse('request_not_supported', 'request is not supported.')
  if (one('request_uri') !== null) return refuse('request_uri_not_supported', 'request_uri is not supported.')
  if (one('response_type') === null) return refuse('invalid_request', 'response_type is missing.')
  if (one('response_type') !== 'code')
    return refuse('unsupported_response_type', 'response_type must be code.')
  if ((one('response_mode') ?? 'query') !== 'query')
    return refuse('invalid_request', 'response_mode must be query.')
  if (state !== null && !isState(state))
    return refuse('invalid_request', `state must be at most ${MAX_STATE} printable ASCII characters.`)
  if (one('code_challenge_method') !== 'S256')
    return refuse('invalid_request', 'code_challenge_method must be S256 (PKCE).')
  if (!/^[A-Za-z0-9_-]{43}$/.test(one('code_challenge') ?? ''))
    return refuse(
      'invalid_request',
      'code_challenge must be the 43 characters of a SHA-256 in base64url (PKCE).',
    )
  if (!isOurResource(one('resource'), config.publicUrl))
    return refuse('invalid_target', 'resource is not of this service.')
  if (!scopes.includes('units') && !scopes.includes('offline_access'))
    return refuse('invalid_scope', 'scope must hold units.')
  if (one('prompt') === 'none') return refuse('interaction_required', 'A person has to agree.')
  return null
}
