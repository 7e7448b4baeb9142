// How every way of signing in ends.

import type { App } from '../../app.ts'
import { SESSION_LIVES_MS } from '../../domain/credentials/begin-session.ts'
import { endSession } from '../../domain/credentials/sessions.ts'
import { dropCookie, setCookie } from './cookies.ts'
import type { PageAnswer, PageRequest } from './page.ts'

/** Whoever was signed in in this browser before is not any more. */
export async function signedIn(
  app: App,
  { sessionToken }: Pick<PageRequest, 'sessionToken'>,
  token: string,
): Promise<PageAnswer> {
  if (sessionToken !== null) await endSession(app, sessionToken)
  const { publicUrl } = app.config
  const cookies = [
    setCookie('session', token, SESSION_LIVES_MS, publicUrl),
    dropCookie('provider', publicUrl),
  ]
  return { status: 303, html: '', headers: { location: '/account', 'set-cookie': cookies } }
}
