// As much of GitHub as signing in takes: an OAuth server with PKCE, and the two calls that say who somebody is.

import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { ProviderClient } from '../../src/lib/service-settings.ts'

export type GithubPerson = {
  login: string
  name: string | null
  emails: { email: string; primary: boolean; verified: boolean }[]
}

export type Github = {
  client: ProviderClient
  /** By their number. The header `x-person` of a browser says who sits before it. */
  people: Map<string, GithubPerson>
  close: () => Promise<void>
}

export async function startGithub(): Promise<Github> {
  const people = new Map<string, GithubPerson>()
  const codes = new Map<string, { person: string; challenge: string; redirectUri: string }>()
  const tokens = new Map<string, string>()
  const server = createServer((request, response) => void serve(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = {
    clientId: 'berth',
    clientSecret: 'a secret of berth and GitHub',
    url,
    apiUrl: `${url}/api`,
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '', url)
    if (pathname === '/login/oauth/authorize') return authorize(request, response, searchParams)
    if (pathname === '/login/oauth/access_token') return exchange(await text(request), response)
    const token = /^bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
    const id = tokens.get(token)
    const person = people.get(id ?? '')
    if (!person) return json(response, 401, { message: 'Bad credentials' })
    if (pathname === '/api/user') return json(response, 200, { id: Number(id), ...person })
    if (pathname === '/api/user/emails') return json(response, 200, person.emails)
    json(response, 404, { message: 'Not Found' })
  }

  function authorize(request: IncomingMessage, response: ServerResponse, query: URLSearchParams): void {
    const code = randomBytes(10).toString('hex')
    const redirectUri = query.get('redirect_uri') ?? ''
    const challenge = query.get('code_challenge') ?? ''
    codes.set(code, { person: String(request.headers['x-person']), challenge, redirectUri })
    const location = `${redirectUri}?code=${code}&state=${query.get('state')}`
    response.writeHead(302, { location }).end()
  }

  /** GitHub answers its refusals with 200. */
  function exchange(body: string, response: ServerResponse): void {
    const sent = new URLSearchParams(body)
    const known = codes.get(sent.get('code') ?? '')
    codes.delete(sent.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(sent.get('code_verifier') ?? '')
      .digest('base64url')
    const isOurs = sent.get('client_secret') === client.clientSecret
    if (
      !known ||
      !isOurs ||
      known.challenge !== challenge ||
      known.redirectUri !== sent.get('redirect_uri')
    ) {
      return json(response, 200, {
        error: 'bad_verification_code',
        error_description: 'The code is incorrect.',
      })
    }
    const token = `gho_${randomBytes(10).toString('hex')}`
    tokens.set(token, known.person)
    json(response, 200, { access_token: token, token_type: 'bearer', scope: 'read:user,user:email' })
  }

  return {
    client,
    people,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body))
}
