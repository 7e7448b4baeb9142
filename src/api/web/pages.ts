// The HTML pages of the server. They are not operations and not in the OpenAPI document, so they have no audit rows,
// but the same limits apply.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import type { App } from '../../app.ts'
import type { AppError } from '../../contract/errors.ts'
import { type Body, readBody } from '../http/body.ts'
import { logError, payloadTooLarge, toAppError } from '../http/errors.ts'
import { findLiveSession } from '../../domain/credentials/sessions.ts'
import { escapeHtml, htmlPage, pageHeaders, stylesheet, stylesheetPath } from './html.ts'
import { send, sendError, sendJson } from '../http/response.ts'
import { isFromOwnPages } from '../http/request.ts'
import { readCookie } from '../http/cookies.ts'
import { providerPages } from './sign-in-providers.ts'
import { invitePages } from './invite-pages.ts'
import type { Page, PageRequest } from './page.ts'
import { accountPages } from './account.ts'
import { consentPages } from './consent.ts'
import { hostsPage } from './hosts.ts'
import { signInPages } from './sign-in.ts'

/** Leads a person who opens the bare address to the dashboard; where none is built, it describes the service. */
const front: Page = {
  method: 'GET',
  path: '/',
  answer: async (app, { wantsHtml, hasDashboard, sessionToken }) => {
    const { publicUrl } = app.config
    const openapi = `${publicUrl}/v1/openapi.json`
    if (!wantsHtml) return { status: 200, json: { name: 'Berth', api: `${publicUrl}/v1`, openapi } }
    if (hasDashboard) {
      const person = sessionToken === null ? null : await findLiveSession(app, sessionToken)
      return { status: 303, html: '', headers: { location: person === null ? '/sign-in' : '/t' } }
    }
    const markup = `
<p>Container units for AI agents. The API is at <code>${escapeHtml(publicUrl)}/v1</code>; it is described in
<a href="/v1/openapi.json">/v1/openapi.json</a>. People see <a href="/account">their account</a> here.</p>
<p>The dashboard is not built: the set-up does it, or <code>npm run build:dashboard</code>.</p>`
    return { status: 200, html: htmlPage('Berth', markup) }
  },
}

const styles: Page = {
  method: 'GET',
  path: stylesheetPath,
  answer: async () => ({ status: 200, css: stylesheet }),
}

export const pages: readonly Page[] = [
  front,
  styles,
  ...signInPages,
  ...accountPages,
  ...providerPages,
  ...invitePages,
  ...consentPages,
  hostsPage,
]

function formBody(maxBytes = 4096): Omit<Body<unknown>, 'parse'> {
  return { kind: 'bytes', schema: z.unknown(), maxBytes, tooLarge: () => payloadTooLarge(maxBytes) }
}

export async function answerPage(
  app: App,
  page: Page,
  request: IncomingMessage,
  response: ServerResponse,
  {
    requestId,
    peer,
    params,
    hasDashboard,
    perform,
  }: { requestId: string } & Pick<PageRequest, 'peer' | 'params' | 'hasDashboard' | 'perform'>,
): Promise<void> {
  try {
    const body = page.method === 'POST' ? await readBody(request, formBody(page.maxFormBytes)) : ''
    const url = request.url ?? ''
    const answer = await page.answer(app, {
      query: new URLSearchParams(url.includes('?') ? url.slice(url.indexOf('?')) : ''),
      form: new URLSearchParams(body.toString()),
      sessionToken: readCookie(request.headers.cookie, 'session', app.config.publicUrl),
      providerToken: readCookie(request.headers.cookie, 'provider', app.config.publicUrl),
      consentTicket: readCookie(request.headers.cookie, 'consent', app.config.publicUrl),
      peer,
      fromOwnPages: isFromOwnPages(request, app.config.publicUrl),
      wantsHtml: acceptsHtml(request),
      params,
      hasDashboard,
      perform,
    })
    if ('json' in answer) sendJson(response, answer.status, answer.json)
    else if ('css' in answer) send(response, answer.status, answer.css, stylesheetHeaders)
    else send(response, answer.status, answer.html, { ...pageHeaders, ...answer.headers })
  } catch (error) {
    logError(app.log, error, requestId)
    const known = toAppError(error)
    if (acceptsHtml(request)) sendErrorPage(response, known, requestId)
    else sendError(response, known, requestId)
  }
}

/** Pages name the stylesheet with its digest, so it never changes under its address. */
const stylesheetHeaders = {
  'content-type': 'text/css; charset=utf-8',
  'cache-control': 'public, max-age=31536000, immutable',
  'x-content-type-options': 'nosniff',
}

export function acceptsHtml({ headers }: IncomingMessage): boolean {
  return (headers.accept ?? '').includes('text/html')
}

export function sendErrorPage(
  response: ServerResponse,
  error: AppError,
  requestId: string,
  headers: Record<string, string> = {},
): void {
  const { status, message, retryAfterS } = error
  const markup = `
<p>${escapeHtml(message)}</p>
<p><a href="/sign-in">Sign in</a> · <a href="/account">Your account</a></p>
<p class="reference">${escapeHtml(requestId)}</p>`
  send(response, status, htmlPage('This did not work', markup), {
    ...pageHeaders,
    ...headers,
    ...(retryAfterS === null ? {} : { 'retry-after': String(retryAfterS) }),
  })
}
