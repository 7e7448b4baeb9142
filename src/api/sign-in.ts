// Signing in by a one-time link, and the page of whoever has. Looking at a link uses nothing up: mail
// scanners and previews open links too, so a button does it (design 7).

import { AppError, forbidden } from '../contract/errors.ts'
import { endSession, whoIs } from '../domain/credentials/sessions.ts'
import { readSignInLink, SESSION_LIVES_MS, signIn } from '../domain/credentials/sign-in.ts'
import { escapeHtml, htmlPage } from './html.ts'
import type { Page, PageAnswer, PageRequest } from './page.ts'
import { expiredSessionCookie, sessionCookie } from './session-cookie.ts'

const showLink: Page = {
  method: 'GET',
  path: '/sign-in',
  answer: async (app, { query }) => {
    const token = query.get('token') ?? ''
    const email = await readSignInLink(app, token)
    if (email === null) return deadLink()
    const form = `
<p>You are about to sign in as <b>${escapeHtml(email)}</b>.</p>
<form method="post" action="/sign-in"><input type="hidden" name="token" value="${escapeHtml(token)}"><button>Sign in</button></form>`
    return { status: 200, html: htmlPage('Sign in to Berth', form) }
  },
}

const useLink: Page = {
  method: 'POST',
  path: '/sign-in',
  answer: async (app, request) => {
    refuseForeignPages(request)
    try {
      const { token } = await signIn(app, request.form.get('token') ?? '')
      const cookie = sessionCookie(token, SESSION_LIVES_MS, app.config.publicUrl)
      return { status: 303, html: '', headers: { location: '/account', 'set-cookie': cookie } }
    } catch (error) {
      if (error instanceof AppError && error.status === 401) return deadLink()
      throw error
    }
  },
}

const account: Page = {
  method: 'GET',
  path: '/account',
  answer: async (app, { sessionToken }) => {
    const person = sessionToken === null ? null : await whoIs(app, sessionToken)
    if (person === null) return signedOut()
    const markup = `
<p>You are signed in as <b>${escapeHtml(person.email)}</b>.</p>
<p>The API is at <code>${escapeHtml(app.config.publicUrl)}/v1</code>, its description at
<a href="/v1/openapi.json">/v1/openapi.json</a>.</p>
<form method="post" action="/sign-out"><button>Sign out</button></form>`
    return { status: 200, html: htmlPage('Your account', markup) }
  },
}

const signOut: Page = {
  method: 'POST',
  path: '/sign-out',
  answer: async (app, request) => {
    refuseForeignPages(request)
    if (request.sessionToken !== null) await endSession(app, request.sessionToken)
    const cookie = expiredSessionCookie(app.config.publicUrl)
    return { status: 303, html: '', headers: { location: '/account', 'set-cookie': cookie } }
  },
}

export const signInPages: readonly Page[] = [showLink, useLink, account, signOut]

/** Without this another site could sign a visitor in to an account of its own choice. */
function refuseForeignPages({ fromOwnPages }: PageRequest): void {
  if (!fromOwnPages) throw forbidden('This form was sent from another site.')
}

function deadLink(): PageAnswer {
  const text = '<p>It has been used, has expired, or was never one. Ask for a new one.</p>'
  return { status: 401, html: htmlPage('This sign-in link does not work', text) }
}

function signedOut(): PageAnswer {
  const text =
    '<p>Open a sign-in link to sign in. The operator makes one with <code>npm run sign-in</code>.</p>'
  return { status: 401, html: htmlPage('You are not signed in', text) }
}
