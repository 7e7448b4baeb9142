// A program that people connect, as a test plays it: one call at a time, so that each can be changed, sent twice or sent
// by somebody else.

import { createHash, randomBytes } from 'node:crypto'
import { type Browser, openBrowser } from './browser.ts'
import type { Service } from './service.ts'

export type TestClient = { id: string; redirectUri: string }
export type Tokens = {
  access_token: string
  token_type: string
  expires_in: number
  refresh_token: string
  scope: string
}
export type OauthAnswer<T = Tokens & { error?: string; error_description?: string }> = {
  status: number
  headers: Headers
  body: T
}

export const LOOPBACK = 'http://127.0.0.1:43210/callback'

export async function postJson<T>(service: Service, path: string, body: unknown): Promise<OauthAnswer<T>> {
  const headers = { 'content-type': 'application/json' }
  const sent = typeof body === 'string' ? body : JSON.stringify(body)
  return await answerOf<T>(await service.fetch('POST', path, { body: sent, headers }))
}

export async function postForm(
  service: Service,
  path: string,
  fields: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<OauthAnswer> {
  const form = { 'content-type': 'application/x-www-form-urlencoded', ...headers }
  const body = new URLSearchParams(fields).toString()
  return await answerOf(await service.fetch('POST', path, { body, headers: form }))
}

async function answerOf<T>(response: Response): Promise<OauthAnswer<T>> {
  const { status, headers } = response
  return { status, headers, body: (await response.json()) as T }
}

export async function registerClient(
  service: Service,
  { redirectUri = LOOPBACK, name = 'Test Agent' } = {},
): Promise<TestClient> {
  const metadata = { client_name: name, redirect_uris: [redirectUri] }
  const { status, body } = await postJson<{ client_id: string }>(service, '/oauth/register', metadata)
  if (status !== 201) throw new Error(`not registered: ${status} ${JSON.stringify(body)}`)
  return { id: body.client_id, redirectUri }
}

export function newPkce(): { verifier: string; challenge: string } {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

/** The path of a request that is as it should be, but for `changes`; null leaves a field out. */
export function authorizePath(
  client: TestClient,
  challenge: string,
  changes: Record<string, string | null> = {},
): string {
  const fields: Record<string, string | null> = {
    response_type: 'code',
    client_id: client.id,
    redirect_uri: client.redirectUri,
    state: 'the state',
    scope: 'units',
    resource: 'http://berth.test/mcp',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...changes,
  }
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) if (value !== null) query.set(name, value)
  return `/oauth/authorize?${query.toString()}`
}

/** A browser in which a person is signed in. `cookie` as makeSession answers it. */
export function signedInBrowser(service: Service, cookie: string): Browser {
  const browser = openBrowser(service)
  const [name = '', value = ''] = cookie.split('=', 2)
  browser.setCookie(name, value)
  return browser
}

/** Where the browser is sent to by a request to connect: the consent page. */
export async function openConsent(browser: Browser, path: string): Promise<string> {
  const answer = await browser.get(path)
  const location = answer.headers.get('location')
  if (answer.status !== 303 || location === null)
    throw new Error(`no consent page: ${answer.status} ${await answer.text()}`)
  return location
}

/** The fields of the one form of a page, as a browser would send them. */
export function formOf(html: string): URLSearchParams {
  const plain = (text: string) =>
    text.replace(/&#(\d+);/g, (_all, code: string) => String.fromCharCode(+code))
  const fields = new URLSearchParams()
  for (const [tag] of html.matchAll(/<input[^>]*>/g)) {
    const of = (name: string) => plain(new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1] ?? '')
    if (of('type') !== 'checkbox' || tag.includes(' checked')) fields.append(of('name'), of('value'))
  }
  for (const [, name = '', text = ''] of html.matchAll(/<textarea[^>]* name="([^"]*)"[^>]*>([^<]*)</g)) {
    fields.append(name, plain(text))
  }
  return fields
}

/** Where the page sends the browser that answers a decision. */
export function nextOf(html: string): string {
  const url = /http-equiv="refresh" content="0; url=([^"]+)"/.exec(html)?.[1]
  if (url === undefined) throw new Error(`the page leads nowhere: ${html}`)
  return url.replace(/&#(\d+);/g, (_all, code: string) => String.fromCharCode(+code))
}

export type Agreed = { code: string; verifier: string; answer: URLSearchParams }

/** From the request to the code: a person agrees to what the page shows, but for `changes`. */
export async function agree(
  browser: Browser,
  client: TestClient,
  {
    asked = {},
    changes = {},
  }: { asked?: Record<string, string | null>; changes?: Record<string, string> } = {},
): Promise<Agreed> {
  const { verifier, challenge } = newPkce()
  const consent = await openConsent(browser, authorizePath(client, challenge, asked))
  const page = await browser.get(consent)
  const form = formOf(await page.text())
  form.set('decision', 'connect')
  for (const [name, value] of Object.entries(changes)) form.set(name, value)
  const decided = await browser.post('/oauth/consent', form)
  const html = await decided.text()
  if (decided.status !== 200) throw new Error(`not connected: ${decided.status} ${html}`)
  const next = nextOf(html)
  const answer = new URL(next).searchParams
  return { code: answer.get('code') ?? '', verifier, answer }
}

export async function redeem(
  service: Service,
  client: TestClient,
  { code, verifier }: { code: string; verifier: string },
  changes: Record<string, string> = {},
): Promise<OauthAnswer> {
  return await postForm(service, '/oauth/token', {
    grant_type: 'authorization_code',
    client_id: client.id,
    code,
    code_verifier: verifier,
    redirect_uri: client.redirectUri,
    ...changes,
  })
}

export async function refresh(
  service: Service,
  client: Pick<TestClient, 'id'>,
  refreshToken: string,
): Promise<OauthAnswer> {
  const fields = { grant_type: 'refresh_token', client_id: client.id, refresh_token: refreshToken }
  return await postForm(service, '/oauth/token', fields)
}

/** The whole way, with a client of its own. */
export async function connect(
  service: Service,
  cookie: string,
  { changes = {}, client }: { changes?: Record<string, string>; client?: TestClient } = {},
): Promise<{ client: TestClient; tokens: Tokens }> {
  const connected = client ?? (await registerClient(service))
  const agreed = await agree(signedInBrowser(service, cookie), connected, { changes })
  const { status, body } = await redeem(service, connected, agreed)
  if (status !== 200) throw new Error(`no tokens: ${status} ${JSON.stringify(body)}`)
  return { client: connected, tokens: body }
}
