// Completes a sign-in with a provider. People are identified by the provider's own id; at the first sign-in a person
// is joined to the account of their address only if the provider has verified the address.

import type { Kysely } from 'kysely'
import {
  authorizationCodeGrant,
  AuthorizationResponseError,
  ClientError,
  ResponseBodyError,
} from 'openid-client'
import type { App } from '../../app.ts'
import { forbidden, unauthorized } from '../../contract/errors.ts'
import { cleanLine } from '../../contract/fields.ts'
import { limits } from '../../contract/limits.ts'
import type { Provider } from '../../contract/me.ts'
import { emailPattern } from '../../lib/email.ts'
import type { Database } from '../../store/db.ts'
import { findUserOfIdentity, insertIdentity } from '../../store/identities.ts'
import { findOrCreateAccount, nameFrom } from '../credentials/find-or-create-account.ts'
import { beginSession, type BegunSession } from '../credentials/begin-session.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { type OAuthState, consumeOAuthState } from './oauth-state.ts'
import { clientOf, connect, doesNotAnswer } from './connect.ts'
import { callbackUrl, providerKinds } from './list.ts'
import type { Person } from './provider.ts'

/** `token`: from the browser's cookie. `answer`: the query of the redirect. */
export async function finishProviderSignIn(
  app: App,
  { provider, token, answer }: { provider: Provider; token: string; answer: URLSearchParams },
): Promise<BegunSession> {
  const state = answer.get('state') ?? ''
  const attempt = await consumeOAuthState(app, provider, { token, state })
  if (!attempt)
    throw unauthorized('This sign-in was not started in this browser, or took too long; start again.')
  const person = await identify(app, provider, { attempt, state, answer })
  return await inTransaction(app, async (db) => {
    const at = app.clock.now()
    const userId = await userOf(app, db, { provider, person, at })
    return await beginSession(db, { userId, at })
  })
}

async function identify(
  app: App,
  provider: Provider,
  { attempt, state, answer }: { attempt: OAuthState; state: string; answer: URLSearchParams },
): Promise<Person> {
  const kind = providerKinds[provider]
  const client = clientOf(app, provider)
  const configuration = await connect(provider, client)
  try {
    const tokens = await authorizationCodeGrant(
      configuration,
      new URL(`${callbackUrl(app.config, provider)}?${answer.toString()}`),
      {
        pkceCodeVerifier: attempt.codeVerifier,
        expectedState: state,
        ...(kind.isOpenId ? { expectedNonce: attempt.nonce } : {}),
      },
    )
    return await kind.identify(tokens, configuration, client)
  } catch (error) {
    if (isRefusal(error)) throw unauthorized('The provider refused the sign-in; start again.')
    throw doesNotAnswer(error)
  }
}

/**
 * True if the person refused, or the provider's answer is replayed or forged; other errors are the operator's to fix.
 */
function isRefusal(error: unknown): boolean {
  if (error instanceof AuthorizationResponseError) return true
  if (error instanceof ResponseBodyError) return error.error === 'invalid_grant'
  return error instanceof ClientError && misfits.includes(error.code ?? '')
}

const misfits = [
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
]

async function userOf(
  { config }: App,
  db: Kysely<Database>,
  { provider, person, at }: { provider: Provider; person: Person; at: Date },
): Promise<string> {
  const { subject, verifiedEmail: email } = person
  const known = await findUserOfIdentity(db, { provider, subject })
  if (known !== null) return known
  if (email === null || email.length > limits.inviteEmailLength || !emailPattern.test(email)) {
    throw forbidden(
      'The provider has not verified an address of yours that can be used here; verify it there first.',
    )
  }
  const name = cleanLine(person.name ?? '', limits.userNameLength) || nameFrom(email)
  const { userId, isProven } = await findOrCreateAccount(db, {
    email,
    name,
    at,
    freeCreditsCents: config.freeCreditsCents,
  })
  // Another person may have created that account, and would share it with the owner of the address.
  if (!isProven)
    throw forbidden('An account has this address but has not verified it; sign in by a link first.')
  await insertIdentity(db, { provider, subject, userId, createdAt: at })
  return userId
}
