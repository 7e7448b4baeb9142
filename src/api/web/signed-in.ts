// The last step of every way to sign in.

import type { App } from '../../app.ts'
import { SESSION_LIFETIME_MS } from '../../domain/credentials/begin-session.ts'
import { endSession } from '../../domain/credentials/sessions.ts'
import { isWaiting } from '../../domain/oauth/consent.ts'
import { dropCookie, setCookie } from '../http/cookies.ts'
import type { PageAnswer, PageRequest } from './page.ts'

/** Ends the session that this browser had before, and continues with a waiting program if there is one. */
export async function signedIn(
  app: App,
  { sessionToken, consentTicket }: Pick<PageRequest, 'sessionToken' | 'consentTicket'>,
  token: string,
): Promise<PageAnswer> {
  if (sessionToken !== null) await endSession(app, sessionToken)
  const { publicUrl } = app.config
  const cookies = [
    setCookie('session', token, SESSION_LIFETIME_MS, publicUrl),
    dropCookie('provider', publicUrl),
    dropCookie('consent', publicUrl),
  ]
  const waits = consentTicket !== null && (await isWaiting(app, consentTicket))
  const location = waits ? `/oauth/consent?ticket=${encodeURIComponent(consentTicket)}` : '/'
  return { status: 303, html: '', headers: { location, 'set-cookie': cookies } }
}
