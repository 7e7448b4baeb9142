// Connecting a program: it sends a browser here (RFC 6749 4.1.1), the person chooses the team and the policy, and the
// browser returns to the program with a code. The page always asks, also a person who has agreed before: another
// program can have the same name, and the same redirect in a registration of its own. Works without script.

import { AppError, type Issue, unauthorized } from '../../contract/errors.ts'
import { connectedSchema } from '../../contract/oauth.ts'
import { START_AGAIN } from '../../domain/oauth/connect.ts'
import { askForConsent, isWaiting, type Question, refuseConsent } from '../../domain/oauth/consent.ts'
import { OauthError } from '../../domain/oauth/errors.ts'
import { readRedirect } from '../../domain/oauth/redirects.ts'
import { beginRequest, REQUEST_LIVES_MS } from '../../domain/oauth/request.ts'
import { boundsOf } from '../../domain/units/admission/plan-bounds.ts'
import { connectRoute } from '../routes/connect.ts'
import { consentMarkup } from './consent-markup.ts'
import { type Fields, fieldsOf, policyOf, postedFields } from './consent-form.ts'
import { setCookie } from '../http/cookies.ts'
import { escapeHtml, htmlPage } from './html.ts'
import { type Page, type PageAnswer, refuseForeignPages } from './page.ts'

const authorize: Page = {
  method: 'GET',
  path: '/oauth/authorize',
  answer: async (app, { query, peer }) => {
    try {
      const begun = await beginRequest(app, { query, peer })
      if (begun.kind === 'begun') return seeOther(consentUrl(begun.ticket))
      // Without a person's consent no browser is redirected to another site (RFC 9700 4.11.2).
      if (readRedirect(begun.redirectUri)?.kind === 'loopback') return seeOther(begun.redirectTo)
      const markup = `
<p>The program asked in a way that is not supported: ${escapeHtml(begun.message)}</p>
<p><a href="${escapeHtml(begun.redirectTo)}">Go back to ${escapeHtml(destinationOf(begun.redirectUri))}</a></p>`
      return { status: 400, html: htmlPage('This did not work', markup) }
    } catch (error) {
      if (!(error instanceof OauthError)) throw error
      const markup = `<p>${escapeHtml(error.message)}</p><p>Nothing was sent. ${START_AGAIN}</p>`
      return { status: 400, html: htmlPage('This request to connect does not work', markup) }
    }
  },
}

const ask: Page = {
  method: 'GET',
  path: '/oauth/consent',
  answer: async (app, { query, sessionToken }) => {
    const ticket = query.get('ticket') ?? ''
    const asked = { ticket, sessionToken: sessionToken ?? '', team: query.get('team') }
    const question = await askForConsent(app, asked)
    if (question) return consentPage(200, ticket, question, fieldsOf(question))
    if (sessionToken !== null || !(await isWaiting(app, ticket))) return ended()
    const cookie = setCookie('consent', ticket, REQUEST_LIVES_MS, app.config.publicUrl)
    return { status: 303, html: '', headers: { location: '/sign-in', 'set-cookie': cookie } }
  },
}

const decide: Page = {
  method: 'POST',
  path: '/oauth/consent',
  maxFormBytes: 16_384,
  answer: async (app, request) => {
    refuseForeignPages(request)
    const { form, sessionToken } = request
    if (sessionToken === null) throw unauthorized(`You are no longer signed in. ${START_AGAIN}`)
    const ticket = form.get('ticket') ?? ''
    const team = form.get('team') ?? ''
    const question = await askForConsent(app, { ticket, sessionToken, team })
    if (form.get('decision') !== 'connect') {
      const refused = question && (await refuseConsent(app, { ticket, sessionToken }))
      return refused ? goBack('Not connected', refused) : ended()
    }
    const fields = postedFields(form)
    const { policy, issues } = policyOf(fields, question && boundsOf(question.team.plan))
    try {
      // Also a form that asks for nothing there is: the operation refuses it, and records that.
      const client = question?.client.id ?? ''
      const body = { ticket, team, client, name: fields.name, policy }
      const { redirectTo } = connectedSchema.parse(await request.perform(connectRoute, {}, body))
      return question ? goBack('Connected', { redirectUri: question.redirectUri, redirectTo }) : ended()
    } catch (error) {
      if (!(error instanceof AppError) || error.status >= 500 || error.status === 401) throw error
      if (error.status === 409 || !question) return ended()
      const refused = error.code === 'validation' ? [...issues, ...issuesOf(error)] : []
      const message = issues[0]?.message ?? error.message
      return consentPage(error.status, ticket, question, fields, { message, issues: refused })
    }
  },
}

export const consentPages: readonly Page[] = [authorize, ask, decide]

function issuesOf({ details }: AppError): Issue[] {
  return Array.isArray(details) ? details : []
}

function consentPage(
  status: number,
  ticket: string,
  question: Question,
  fields: Fields,
  refusal: { message: string; issues: Issue[] } | null = null,
): PageAnswer {
  const markup = consentMarkup({
    ticket,
    question,
    fields,
    refusal,
    destination: destinationOf(question.redirectUri),
  })
  return { status, html: htmlPage('Connect a program?', markup, { wide: true }) }
}

/** A page that redirects by itself: browsers follow a form's own redirect only to where `form-action` allows. */
function goBack(
  title: string,
  { redirectUri, redirectTo }: { redirectUri: string; redirectTo: string },
): PageAnswer {
  const markup = `<p><a href="${escapeHtml(redirectTo)}">Go back to ${escapeHtml(destinationOf(redirectUri))}</a></p>`
  return { status: 200, html: htmlPage(title, markup, { goTo: redirectTo }) }
}

function destinationOf(redirectUri: string): string {
  const redirect = readRedirect(redirectUri)
  if (redirect === null) return 'nowhere'
  if (redirect.kind === 'loopback') return `a program on this computer (${redirect.name})`
  return redirect.kind === 'app' ? `the app ${redirect.name}:` : redirect.name
}

const consentUrl = (ticket: string) => `/oauth/consent?ticket=${encodeURIComponent(ticket)}`

function seeOther(location: string): PageAnswer {
  return { status: 303, html: '', headers: { location } }
}

function ended(): PageAnswer {
  const markup = `<p>It was answered, took too long, or was opened by another person. ${START_AGAIN}</p>`
  return { status: 409, html: htmlPage('This request to connect has ended', markup) }
}
