// Signing in by a one-time link, and the page of a signed-in person. Opening a link does not use it up, since mail
// scanners and previews open links too: a button does (design 7). For providers see sign-in-providers.ts.

import type { App } from '../../app.ts'
import { AppError } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import { mailSignInLink } from '../../domain/credentials/magic-link.ts'
import { endSession } from '../../domain/credentials/sessions.ts'
import { readSignInLink, signIn } from '../../domain/credentials/sign-in.ts'
import { isWaiting } from '../../domain/oauth/consent.ts'
import { listProviders } from '../../domain/providers/list.ts'
import { emailPattern } from '../../lib/email.ts'
import { dropCookie } from '../http/cookies.ts'
import { socialTags } from './social.ts'
import { escapeHtml, htmlPage } from './html.ts'
import { type Page, type PageAnswer, refuseForeignPages } from './page.ts'
import { providerNames } from './sign-in-providers.ts'
import { signedIn } from './signed-in.ts'

const showSignIn: Page = {
  method: 'GET',
  path: '/sign-in',
  answer: async (app, { query, consentTicket }) => {
    const token = query.get('token')
    if (token === null) {
      const waits = consentTicket !== null && (await isWaiting(app, consentTicket))
      const why = waits
        ? '<p>A program wants to connect. You will be asked about it next.</p>'
        : query.has('ended')
          ? '<p>You are signed out. Signing in leads back to where you were.</p>'
          : ''
      const head = socialTags(app.config.publicUrl, 'Sign in to Berth')
      return { status: 200, html: htmlPage('Sign in to Berth', why + waysIn(app), { head }) }
    }
    const email = await readSignInLink(app, token)
    if (email === null) return deadLink()
    const form = `
<p>You are about to sign in as <b>${escapeHtml(email)}</b>.</p>
<form method="post" action="/sign-in"><input type="hidden" name="token" value="${escapeHtml(token)}"><p class="stack"><button class="main">Sign in</button></p></form>`
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
      return await signedIn(app, request, token)
    } catch (error) {
      if (error instanceof AppError && error.status === 401) return deadLink()
      throw error
    }
  },
}

const askForLink: Page = {
  method: 'POST',
  path: '/sign-in/link',
  answer: async (app, request) => {
    refuseForeignPages(request)
    const email = (request.form.get('email') ?? '').trim()
    if (email.length > limits.inviteEmailLength || !emailPattern.test(email)) {
      const text = `<p>This is not a mail address. Check it and send it again.</p>${waysIn(app)}`
      return { status: 400, html: htmlPage('Sign in to Berth', text) }
    }
    await mailSignInLink(app, { email, peer: request.peer })
    const text = `
<p>A link is on its way to <b>${escapeHtml(email)}</b>. It works once, for 15 minutes.</p>
${app.config.mail.smtpUrl === null ? '<p>This service has no mail server: its operator finds the mail in the data directory.</p>' : ''}`
    return { status: 200, html: htmlPage('Look at your mail', text) }
  },
}

/** Where a person who reloads the answer by its address gets: the form again. */
const showLinkForm: Page = {
  method: 'GET',
  path: '/sign-in/link',
  answer: async () => ({ status: 303, html: '', headers: { location: '/sign-in' } }),
}

const signOut: Page = {
  method: 'POST',
  path: '/sign-out',
  answer: async (app, request) => {
    refuseForeignPages(request)
    if (request.sessionToken !== null) await endSession(app, request.sessionToken)
    const cookie = dropCookie('session', app.config.publicUrl)
    return { status: 303, html: '', headers: { location: '/account', 'set-cookie': cookie } }
  },
}

export const signInPages: readonly Page[] = [showSignIn, useLink, showLinkForm, askForLink, signOut]

function waysIn({ config }: App): string {
  const buttons = listProviders(config).map(
    (provider) =>
      `<form method="post" action="/sign-in/${provider}"><button>Sign in with ${providerNames[provider]}</button></form>`,
  )
  if (config.mail.smtpUrl === null)
    return (buttons.length === 0 ? '' : `<div class="stack">\n${buttons.join('\n')}\n</div>`) + linkByOperator
  const others = buttons.length === 0 ? '' : `<p class="or">or</p>\n${buttons.join('\n')}`
  return `
<div class="stack">
${linkByMail}
${others}
</div>`
}

const linkByMail = `<form method="post" action="/sign-in/link">
<p><label>Your email address<input type="email" name="email" autocomplete="email" maxlength="254" required></label></p>
<button class="main">Mail me a link</button></form>`

/** Without a mail server mails go into a folder, where only the operator finds them. */
const linkByOperator = `
<p>This service has no mail server. Its operator makes a link that signs you in, on the machine itself:</p>
<pre tabindex="0">npm run sign-in -- you@example.org</pre>`

function deadLink(): PageAnswer {
  const text =
    '<p>It was used, has expired, or never existed.</p><p><a href="/sign-in">Ask for a new one</a></p>'
  return { status: 401, html: htmlPage('This sign-in link does not work', text) }
}
