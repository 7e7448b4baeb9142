// What the SDK does when a call fails in transit: it retries only what is safe to repeat, with the same idempotency
// key.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Berth, type BerthOptions, type Fetch } from '../../packages/sdk/src/index.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

type Sent = { method: string; path: string; key: string | null }

/** A client whose calls meet `trouble`; records every attempt. */
function through(
  trouble: (sent: Sent, attempt: number) => 'lost' | Response | null,
  options: BerthOptions = {},
) {
  const sent: Sent[] = []
  const troubled: Fetch = async (url, init) => {
    const each = {
      method: init?.method ?? 'GET',
      path: new URL(url).pathname,
      key: new Headers(init.headers).get('idempotency-key'),
    }
    sent.push(each)
    const met = trouble(each, sent.length)
    if (met instanceof Response) return met
    const response = await fetch(url, init)
    if (met === null) return response
    await response.text()
    throw new TypeError('fetch failed', { cause: new Error('read ECONNRESET') })
  }
  return { sent, berth: new Berth({ url: service.baseUrl, apiKey: team.key, fetch: troubled, ...options }) }
}

const refused = (status: number, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify({ error: { code: 'unavailable', message: 'Later.' } }), { status, headers })

const codeOf = async (promise: Promise<unknown>) =>
  await promise.then(
    () => null,
    (error: { code: string }) => error.code,
  )

it('a create whose response is lost is retried with the same key and creates one unit', async () => {
  const { berth, sent } = through((_sent, attempt) => (attempt === 1 ? 'lost' : null))
  const unit = await berth.units.create({ image: 'node:22', name: 'once', stack: 'once' })
  expect(sent).toHaveLength(2)
  expect(sent[0]?.key).toMatch(/^[0-9a-f]{32}$/)
  expect(sent[1]?.key).toBe(sent[0]?.key)
  expect((await berth.units.list({ stack: 'once' }).all()).map(({ id }) => id)).toEqual([unit.id])
})

it('a caller can set the idempotency key of a call', async () => {
  const { berth, sent } = through(() => null)
  await berth.units.create({ image: 'node:22', idempotencyKey: 'my-own' })
  expect(sent.map(({ key }) => key)).toEqual(['my-own'])
})

it('a command whose response is lost is not retried', async () => {
  const { berth, sent } = through(({ path }) => (path.endsWith('/exec') ? 'lost' : null))
  const unit = await berth.units.create('node:22')
  expect(await codeOf(unit.exec('echo x >> /tmp/ran'))).toBe('connection_failed')
  expect(sent.filter(({ path }) => path.endsWith('/exec'))).toHaveLength(1)
  expect(await unit.files.readText('/tmp/ran')).toBe('x\n')
})

it('a command refused by a rate limit is retried after the Retry-After time', async () => {
  const { berth, sent } = through(({ path }, attempt) =>
    path.endsWith('/exec') && attempt === 2 ? refused(429, { 'retry-after': '0' }) : null,
  )
  const unit = await berth.units.create('node:22')
  expect((await unit.exec(['echo', 'ran'])).stdout).toBe('ran\n')
  expect(sent.filter(({ path }) => path.endsWith('/exec'))).toHaveLength(2)
})

it('a Retry-After that is too long is thrown to the caller instead of waited for', async () => {
  const { berth, sent } = through(() => refused(429, { 'retry-after': '40' }))
  await expect(berth.quota()).rejects.toMatchObject({ status: 429, retryAfterMs: 40_000 })
  expect(sent).toHaveLength(1)
})

it('reads are retried at most twice, and not at all after the caller has aborted', async () => {
  const { berth, sent } = through(() => refused(503, { 'retry-after': '0' }))
  expect(await codeOf(berth.quota())).toBe('unavailable')
  expect(sent).toHaveLength(3)

  const controller = new AbortController()
  const gone = through(() => {
    controller.abort(new Error('gone'))
    return refused(503)
  })
  await expect(gone.berth.quota({ signal: controller.signal })).rejects.toThrow('gone')
  expect(gone.sent).toHaveLength(1)
})

it('an error page of a proxy becomes an error with its HTTP status', async () => {
  const page = () => new Response('<html>Bad gateway</html>', { status: 502 })
  const { berth } = through(page, { retries: 0 })
  await expect(berth.quota()).rejects.toMatchObject({ code: 'provider_error', status: 502 })
})

it('the API key is not sent to the target of a redirect', async () => {
  const arrived: string[] = []
  const elsewhere = createServer((request, response) => {
    arrived.push(request.url ?? '')
    response.writeHead(307, { location: `${service.baseUrl}/v1/quota` }).end()
  })
  await once(elsewhere.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`
  expect(await codeOf(new Berth({ url, apiKey: team.key, retries: 0 }).quota())).toBe('connection_failed')
  expect(arrived).toEqual(['/v1/quota'])
  elsewhere.close()
})
