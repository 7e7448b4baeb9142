// The page of a signed-in person: how to connect programs, and which programs are connected, each with a button that
// revokes it.

import { findLiveSession } from '../../domain/credentials/sessions.ts'
import { listConnected } from '../../domain/oauth/list-connected.ts'
import { revokeAgentRoute as revokeRoute } from '../routes/agents.ts'
import { connectedMarkup, connectMarkup } from './connect-programs.ts'
import { escapeHtml, htmlPage, NOT_SIGNED_IN } from './html.ts'
import { type Page, type PageAnswer, refuseForeignPages } from './page.ts'

const account: Page = {
  method: 'GET',
  path: '/account',
  answer: async (app, { sessionToken }) => {
    const person = sessionToken === null ? null : await findLiveSession(app, sessionToken)
    if (person === null) return signedOut()
    const connected = await listConnected(app, person)
    const markup = `
<p>You are signed in as <b>${escapeHtml(person.email)}</b>.</p>
${connectedMarkup(connected)}
${connectMarkup(app.config.publicUrl)}
<h2>Use the API</h2>
<p>It is at <code>${escapeHtml(app.config.publicUrl)}/v1</code>, described in <a href="/v1/openapi.json">/v1/openapi.json</a>.
API keys are made under Agents <a href="/t">in the dashboard</a>, which has the programs of the whole team too.</p>
<form method="post" action="/sign-out"><button>Sign out</button></form>`
    return { status: 200, html: htmlPage('Your account', markup, { wide: true }) }
  },
}

const revoke: Page = {
  method: 'POST',
  path: '/account/agents/{id}/revoke',
  answer: async (_app, request) => {
    refuseForeignPages(request)
    await request.perform(revokeRoute, { id: request.params['id'] ?? '' })
    return { status: 303, html: '', headers: { location: '/account' } }
  },
}

export const accountPages: readonly Page[] = [account, revoke]

function signedOut(): PageAnswer {
  const text =
    '<p><a href="/sign-in">Sign in</a>, or open a sign-in link, which the operator makes with <code>npm run sign-in</code>.</p>'
  return { status: 401, html: htmlPage(NOT_SIGNED_IN, text) }
}
