// Signing in by a browser (docs/oauth.md): a client that registers itself, PKCE, and a redirect to a port of this
// computer that accepts one answer. Later, access tokens are renewed before they expire.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { changeConfig, type OauthLogin, readConfig } from './config.ts'
import { exitCodes, Failure } from './failure.ts'
import { note } from './output.ts'
import { openUrl } from './open-url.ts'

const PATIENCE_MS = 300_000
const CALL_MS = 30_000
/** A token that ends sooner is renewed first. */
const MARGIN_MS = 60_000

type Tokens = { access_token: string; refresh_token: string; expires_in: number }

/** Waits for the decision in the browser. */
export async function signIn(
  url: string,
  { signal, opens }: { signal: AbortSignal; opens: boolean },
): Promise<OauthLogin> {
  const { issuer } = await call<{ issuer: string }>(`${url}/.well-known/oauth-authorization-server`)
  const [verifier, state] = [randomBytes(32).toString('base64url'), randomBytes(16).toString('base64url')]
  const { server, redirectUri } = await listen()
  try {
    const clientId = await register(url, redirectUri)
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      scope: 'units',
      state,
    })
    const address = `${url}/oauth/authorize?${query.toString()}`
    note(`Decide in the browser what this computer may do: ${address}`)
    const answered = answerTo(server, { state, issuer, signal })
    if (opens) await openUrl(address)
    const code = await answered
    const asked = {
      grant_type: 'authorization_code',
      client_id: clientId,
      code,
      code_verifier: verifier,
      redirect_uri: redirectUri,
    }
    return loginOf(clientId, await call<Tokens>(`${url}/oauth/token`, new URLSearchParams(asked)))
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

async function listen(): Promise<{ server: Server; redirectUri: string }> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve)
  })
  return { server, redirectUri: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback` }
}

async function register(url: string, redirectUri: string): Promise<string> {
  const body = JSON.stringify({ client_name: 'Berth CLI', redirect_uris: [redirectUri] })
  return (await call<{ client_id: string }>(`${url}/oauth/register`, body)).client_id
}

/** The code of the one answer that is to this request; whatever else comes to the port is turned away. */
async function answerTo(
  server: Server,
  { state, issuer, signal }: { state: string; issuer: string; signal: AbortSignal },
): Promise<string> {
  const patience = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)])
  return await new Promise<string>((resolve, reject) => {
    patience.addEventListener('abort', () => {
      reject(
        signal.aborted
          ? (signal.reason as Error)
          : new Failure('There was no decision in the browser within five minutes.', { hint: 'berth login' }),
      )
    })
    server.on('request', (request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1')
      const isOurs =
        pathname === '/callback' &&
        isEqual(searchParams.get('state') ?? '', state) &&
        searchParams.get('iss') === issuer
      const headers = {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': "default-src 'none'",
        connection: 'close',
      }
      response.writeHead(isOurs ? 200 : 400, headers)
      response.end(
        isOurs ? '<p>Done. Go back to the terminal.' : '<p>This is no answer to a request of berth.',
      )
      if (!isOurs) return
      const code = searchParams.get('code')
      if (code !== null) resolve(code)
      else
        reject(
          new Failure('It was refused in the browser.', {
            hint: 'berth login',
            exitCode: exitCodes.notSignedIn,
            code: 'unauthorized',
          }),
        )
    })
  })
}

function isEqual(given: string, wanted: string): boolean {
  return given.length === wanted.length && timingSafeEqual(Buffer.from(given), Buffer.from(wanted))
}

/** A token of this profile that is good for a minute at least. */
export async function accessToken(name: string): Promise<string> {
  const profile = readConfig().profiles[name]
  const { oauth, url } = profile ?? {}
  if (!oauth || url === undefined) throw new Failure(`Profile "${name}" is gone.`, { hint: 'berth login' })
  if (Date.parse(oauth.expiresAt) - Date.now() > MARGIN_MS) return oauth.accessToken
  const asked = { grant_type: 'refresh_token', client_id: oauth.clientId, refresh_token: oauth.refreshToken }
  const renewed = loginOf(
    oauth.clientId,
    await call<Tokens>(`${url}/oauth/token`, new URLSearchParams(asked)),
  )
  changeConfig(({ profiles }) => {
    const kept = profiles[name]
    if (kept?.oauth?.clientId === oauth.clientId) kept.oauth = renewed
  })
  return renewed.accessToken
}

/** Gives both tokens back. */
export async function revoke(url: string, { clientId, refreshToken }: OauthLogin): Promise<void> {
  await call(`${url}/oauth/revoke`, new URLSearchParams({ client_id: clientId, token: refreshToken }))
}

function loginOf(clientId: string, { access_token, refresh_token, expires_in }: Tokens): OauthLogin {
  const expiresAt = new Date(Date.now() + expires_in * 1000).toISOString()
  return { clientId, accessToken: access_token, refreshToken: refresh_token, expiresAt }
}

/** A form, JSON in text, or nothing. */
async function call<T>(address: string, body?: URLSearchParams | string): Promise<T> {
  const init: RequestInit = { redirect: 'error', signal: AbortSignal.timeout(CALL_MS) }
  if (body !== undefined) {
    init.method = 'POST'
    init.body = body
    if (typeof body === 'string') init.headers = { 'content-type': 'application/json' }
  }
  const response = await fetch(address, init).catch((cause: unknown) => {
    const why = (cause as { cause?: Error }).cause?.message ?? (cause as Error).message
    throw new Failure(`${new URL(address).origin} cannot be reached: ${why}`, {
      hint: 'berth login URL',
    })
  })
  const answer = (await response.json().catch(() => ({}))) as T & {
    error?: string
    error_description?: string
  }
  if (response.ok) return answer
  if (answer.error === 'invalid_grant')
    throw new Failure('Your sign-in has ended.', {
      hint: 'berth login',
      exitCode: exitCodes.notSignedIn,
      code: 'unauthorized',
    })
  const why = answer.error_description ?? answer.error
  throw new Failure(
    why === undefined || typeof why !== 'string'
      ? `${new URL(address).origin} is no Berth (HTTP ${response.status}).`
      : why,
    {
      hint: 'berth login URL',
    },
  )
}
