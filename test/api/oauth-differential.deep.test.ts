// The same requests to Berth and to oidc-provider, which is certified and configured like Berth. Each difference is
// listed with its reason (support/oauth-differences.ts). Reliability S8.

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MINUTE } from '../../src/lib/clock.ts'
import { type AuthorizationPeer, startAuthorizationPeer } from '../support/authorization-peer.ts'
import { startAtPublicUrl } from '../support/front.ts'
import { makeSession, makeTeam } from '../support/make.ts'
import { differences } from '../support/oauth-differences.ts'
import { type Endpoint, type Fault, faults, type Fields, type Own, valid } from '../support/oauth-requests.ts'
import { formOf, LOOPBACK, newPkce, nextOf } from '../support/oauth.ts'
import type { Service } from '../support/service.ts'

type Side = {
  base: string
  /** A client and another one. */
  clients: [string, string]
  /** The tokens of another sign-in, where a request needs some. */
  spare: Pick<Own, 'access' | 'refresh'>
  /** Acts as a browser whose person agrees, and returns the URL at the client where it ends. */
  agree: (url: string) => Promise<URL>
  /** Waits long enough that no rate limit is met. */
  rest: () => void
}

let service: Service
let peer: AuthorizationPeer
let ours: Side
let theirs: Side

beforeAll(async () => {
  service = await startAtPublicUrl({ loops: false })
  peer = await startAuthorizationPeer()
  const cookie = await makeSession(service, await makeTeam(service))
  const side = async (base: string, rest: () => void, agree: Side['agree']): Promise<Side> => ({
    base,
    spare: { access: '', refresh: '' },
    clients: [await registered(base), await registered(base)],
    agree,
    rest,
  })
  ours = await side(
    service.app.config.publicUrl,
    () => service.clock.advance(MINUTE),
    async (url) => {
      const sent = { cookie, origin: ours.base }
      const consent = await fetch(url, { headers: sent, redirect: 'manual' })
      const at = new URL(consent.headers.get('location') ?? '', ours.base)
      const form = formOf(await (await fetch(at, { headers: sent })).text())
      form.set('decision', 'connect')
      const decided = await fetch(`${ours.base}/oauth/consent`, { method: 'POST', headers: sent, body: form })
      return new URL(nextOf(await decided.text()))
    },
  )
  theirs = await side(
    peer.url,
    () => {},
    async (url) => {
      const jar = new Map<string, string>()
      for (let at = new URL(url), hops = 0; hops < 6; hops++) {
        const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
        const answer = await fetch(at, { headers: { cookie }, redirect: 'manual' })
        for (const line of answer.headers.getSetCookie()) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
          jar.set(name, value)
        }
        at = new URL(answer.headers.get('location') ?? '', at)
        if (at.host !== new URL(peer.url).host) return at
      }
      throw new Error('the peer does not come back')
    },
  )
  for (const each of [ours, theirs]) each.spare = await ownOf(each, 'refresh')
})
afterAll(async () => {
  await peer.close()
  await service.close()
})

async function registered(base: string): Promise<string> {
  const answer = await fetch(`${base}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'A program', redirect_uris: [LOOPBACK] }),
  })
  return ((await answer.json()) as { client_id: string }).client_id
}

const query = (fields: Fields) => new URLSearchParams(fields).toString()
const form = { 'content-type': 'application/x-www-form-urlencoded' }

/** Makes what a client has: an unused code, or a code and the tokens it gave. */
async function ownOf(side: Side, endpoint: Endpoint): Promise<Own> {
  const { verifier, challenge } = newPkce()
  const [clientId, otherClientId] = side.clients
  const own = { base: side.base, clientId, otherClientId, redirectUri: LOOPBACK, verifier, challenge }
  const blank = { ...own, code: '', access: '', refresh: '' }
  if (endpoint === 'authorize' || endpoint === 'register') return blank
  const back = await side.agree(`${side.base}/oauth/authorize?${query(valid.authorize(blank))}`)
  const code = back.searchParams.get('code') ?? ''
  if (endpoint === 'code') return { ...blank, ...side.spare, code }
  return { ...blank, code, ...(await tokensFor(side, { ...blank, code })) }
}

async function tokensFor({ base }: Pick<Side, 'base'>, own: Own): Promise<Pick<Own, 'access' | 'refresh'>> {
  const body = query(valid.code(own))
  const answer = await fetch(`${base}/oauth/token`, { method: 'POST', headers: form, body })
  const tokens = (await answer.json()) as { access_token: string; refresh_token: string }
  return { access: tokens.access_token, refresh: tokens.refresh_token }
}

/** Returns `2xx`, or why the request was refused. */
async function outcome(side: Side, endpoint: Endpoint, wrong: Fault[]): Promise<string> {
  side.rest()
  const own = await ownOf(side, endpoint)
  let asked = { fields: valid[endpoint](own) } as ReturnType<Fault['make']>
  for (const fault of wrong) asked = fault.make(asked, own)
  if (endpoint === 'authorize') return await authorized(side, asked.fields)
  const isJson = endpoint === 'register'
  const json = `{${asked.fields.map(([name, value]) => `"${name}":${value}`).join(',')}}`
  const headers = { ...(isJson ? { 'content-type': 'application/json' } : form), ...asked.headers }
  const path = endpoint === 'code' || endpoint === 'refresh' ? 'token' : endpoint
  const body = asked.body ?? (isJson ? json : query(asked.fields))
  const answer = await fetch(`${side.base}/oauth/${path}`, { method: 'POST', headers, body })
  const said = (await answer.text()) || '{}'
  const { error } = JSON.parse(said) as { error?: string }
  const ended = endpoint === 'revoke' && answer.ok ? `, ${await stillGood(side, own)}` : ''
  return `${Math.floor(answer.status / 100)}xx${error === undefined ? '' : ` ${error}`}${ended}`
}

async function authorized({ base }: Side, fields: Fields): Promise<string> {
  const answer = await fetch(`${base}/oauth/authorize?${query(fields)}`, { redirect: 'manual' })
  await answer.body?.cancel()
  const location = answer.headers.get('location')
  if (location === null) return `a page, ${Math.floor(answer.status / 100)}xx`
  const to = new URL(location, base)
  if (to.origin === base) return 'asks the person'
  // On any port of this computer.
  const back = to.hostname === new URL(LOOPBACK).hostname ? 'tells the program' : `goes to ${to.origin}`
  return `${back}: ${to.searchParams.get('error') ?? new URLSearchParams(to.hash.slice(1)).get('error') ?? 'nothing'}`
}

async function stillGood(side: Side, own: Own): Promise<string> {
  const body = query(valid.refresh(own))
  const answer = await fetch(`${side.base}/oauth/token`, { method: 'POST', headers: form, body })
  await answer.body?.cancel()
  return answer.ok ? 'the tokens go on' : 'the tokens have ended'
}

const endpoints = Object.keys(faults) as Endpoint[]
const none: Fault = { name: 'as it should be', field: '', make: (asked) => asked }
const key = (endpoint: Endpoint, { name }: Fault) => `${endpoint}: ${name}`

describe.each(endpoints)('an OAuth request to %s', (endpoint) => {
  const singles = new Map<Fault, { ours: string; theirs: string }>()

  it.each([none, ...faults[endpoint]].map((fault) => [fault.name, fault] as const))(
    '(%s) is answered as by oidc-provider, or has a listed difference',
    async (_name, fault) => {
      const answered = {
        ours: await outcome(ours, endpoint, [fault]),
        theirs: await outcome(theirs, endpoint, [fault]),
      }
      singles.set(fault, answered)
      const known = differences[key(endpoint, fault)]
      if (known === undefined) expect(answered.ours).toBe(answered.theirs)
      else {
        expect(answered).toEqual({ ours: known.ours, theirs: known.theirs })
        expect(known.ours).not.toBe(known.theirs)
      }
    },
  )

  it('with several faults is refused for one of them, by both servers', async () => {
    const isFine = (said: string) => said.startsWith('2xx') || said === 'asks the person'
    const some = fc.uniqueArray(fc.constantFrom(...faults[endpoint]), {
      minLength: 2,
      maxLength: 3,
      selector: ({ field }) => field,
    })
    await fc.assert(
      fc.asyncProperty(some, async (wrong) => {
        const alone = wrong.map((fault) => singles.get(fault))
        const refusals = alone.map((each) => each?.ours ?? '').filter((said) => !isFine(said))
        const said = await outcome(ours, endpoint, wrong)
        if (refusals.length === 0) expect(isFine(said)).toBe(true)
        else expect(refusals).toContain(said)
        // What oidc-provider accepts of a registration depends on whether it is of a site or an app.
        if (endpoint !== 'register')
          expect(isFine(await outcome(theirs, endpoint, wrong))).toBe(
            alone.every((each) => isFine(each?.theirs ?? '')),
          )
      }),
      { numRuns: 8 },
    )
  })
})

it('every listed difference belongs to a request of this test', () => {
  const made = endpoints.flatMap((endpoint) => faults[endpoint].map((fault) => key(endpoint, fault)))
  expect(Object.keys(differences).filter((each) => !made.includes(each))).toEqual([])
})
