// The page behind an invitation's link shows the team and a button that accepts. Opening the page accepts nothing,
// since mail scanners and previews open links too.

import type { Invitation } from '../../contract/invite.ts'
import { AppError } from '../../contract/errors.ts'
import { lookUpInvite } from '../../domain/invites/look-up.ts'
import { describeSession } from '../../domain/credentials/sessions.ts'
import { isSameEmail } from '../../lib/email.ts'
import { escapeHtml, htmlPage, NOT_SIGNED_IN } from './html.ts'
import { acceptRoute } from '../routes/invites.ts'
import type { Page, PageAnswer } from './page.ts'

const show: Page = {
  method: 'GET',
  path: '/invites/{token}',
  answer: async (app, { params, sessionToken }) => {
    const { token = '' } = params
    const invitation = await orRefusal(lookUpInvite(app, token))
    if (invitation instanceof AppError) return deadLink()
    if (invitation.expired) return expired(invitation)
    const person = sessionToken === null ? null : await describeSession(app, sessionToken)
    const answer = person === null ? signedOut(invitation) : signedIn(invitation, { token, ...person })
    return { status: 200, html: htmlPage('You are invited to a team', about(invitation) + answer) }
  },
}

const accept: Page = {
  method: 'POST',
  path: '/invites/{token}',
  answer: async (_app, { params, perform }) => {
    const { token = '' } = params
    const refused = await orRefusal(perform(acceptRoute, { token }))
    if (!(refused instanceof AppError)) return { status: 303, html: '', headers: { location: '/account' } }
    const { status, message } = refused
    if (status >= 500) throw refused
    if (status === 401) return { status, html: htmlPage(NOT_SIGNED_IN, signInFirst) }
    return { status, html: htmlPage('This did not work', `<p>${escapeHtml(message)}</p>`) }
  },
}

export const invitePages: readonly Page[] = [show, accept]

const signInFirst = '<p><a href="/sign-in">Sign in</a>, then open the link of the invitation again.</p>'

async function orRefusal<T>(work: Promise<T>): Promise<T | AppError> {
  try {
    return await work
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
}

function about({ teamName, role, inviterName, email }: Invitation): string {
  const who = inviterName === null ? 'You are' : `<b>${escapeHtml(inviterName)}</b> has`
  return `
<p>${who} invited ${inviterName === null ? '' : 'you '}to the team <b>${escapeHtml(teamName)}</b>, as ${role === 'admin' ? 'an admin' : 'a member'}.
The invitation is for <b>${escapeHtml(email)}</b>.</p>`
}

function signedIn({ email }: Invitation, person: { token: string; email: string }): string {
  if (!isSameEmail(email, person.email)) {
    return `
<p>You are signed in as <b>${escapeHtml(person.email)}</b>. Sign in as <b>${escapeHtml(email)}</b> to accept.</p>
<form method="post" action="/sign-out"><button>Sign out</button></form>`
  }
  return `
<form method="post" action="/invites/${encodeURIComponent(person.token)}"><button class="main">Join the team</button></form>`
}

function signedOut({ email }: Invitation): string {
  return `
<p><a href="/sign-in">Sign in</a> as <b>${escapeHtml(email)}</b>, and open this link again to accept.</p>`
}

function expired({ teamName, expiresAt }: Invitation): PageAnswer {
  const text = `<p>It was for the team <b>${escapeHtml(teamName)}</b>, until ${escapeHtml(expiresAt)}. Ask for a new invitation.</p>`
  return { status: 409, html: htmlPage('This invitation has expired', text) }
}

function deadLink(): PageAnswer {
  const text = '<p>It was accepted, revoked or replaced by a newer one, or never existed.</p>'
  return { status: 404, html: htmlPage('This invitation does not work', text) }
}
