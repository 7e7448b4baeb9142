// Spec 8: 300 requests, 30 creations and 120 execs a minute for each credential.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { FAILURES_PER_MINUTE } from '../../src/domain/credentials/failed-attempts.ts'
import { newToken } from '../../src/domain/credentials/token.ts'
import { SECOND } from '../../src/lib/clock.ts'
import { boundsIn } from '../support/logged.ts'
import { makeKey, makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Answer, contractRates, type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam

beforeEach(async () => {
  service = await startService({ rates: contractRates, loops: false })
  team = await makeTeam(service)
})
afterEach(async () => await service.close())

/** Calls until one is refused. Returns how many passed, and the refusal. */
async function untilRefused(ask: () => Promise<Answer>): Promise<{ passed: number; refusal: Answer }> {
  for (let passed = 0; passed < 1000; passed++) {
    const answer = await ask()
    if (answer.status === 429) return { passed, refusal: answer }
  }
  throw new Error('nothing was refused')
}

async function expectTrueRetryAfter(refusal: Answer, ask: () => Promise<Answer>): Promise<void> {
  expect(refusal.body).toMatchObject({ error: { code: 'quota_exceeded' } })
  const retryAfterS = Number(refusal.headers.get('retry-after'))
  expect(retryAfterS).toBeGreaterThan(0)
  // A call counts until the quarter of a second that it came in is a minute old (decisions/limits.md).
  expect(retryAfterS).toBeLessThanOrEqual(61)
  service.clock.advance((retryAfterS - 2) * SECOND)
  expect((await ask()).status).toBe(429)
  service.clock.advance(2 * SECOND)
  expect((await ask()).status).not.toBe(429)
}

test('a key may make 300 requests a minute, and the next is refused until retry-after', async () => {
  const ask = () => service.call('GET', '/v1/units', { key: team.key })
  const { passed, refusal } = await untilRefused(ask)
  expect(passed).toBe(300)
  expect(boundsIn(service.logged)).toEqual([['requests a minute', team.teamId]])
  await expectTrueRetryAfter(refusal, ask)
})

describe('a key whose policy has rates', () => {
  let small: Service
  beforeAll(async () => {
    small = await startService({ rates: { requests: 4, creations: 3, execs: 2 }, loops: false })
  })
  afterAll(async () => await small.close())

  test('calls as often as that says, and by the rates of the service in what it leaves out', async () => {
    const mine = await makeTeam(small)
    const { secret: key } = await makeKey(small, { ...mine, policy: { rates: { requests: 6 } } })
    const ask = () => small.call('GET', '/v1/units', { key })
    const { passed, refusal } = await untilRefused(ask)
    expect([passed, refusal.body]).toEqual([
      6,
      { error: expect.objectContaining({ code: 'quota_exceeded' }) },
    ])
    small.clock.advance(70 * SECOND)
    const { body } = await small.call<{ rates: { limit: number }[] }>('GET', '/v1/quota', { key })
    expect(body.rates.map(({ limit }) => limit)).toEqual([6, 3, 2])
  })

  test('has those of a change from its next calls on, up to the operator’s bound', async () => {
    const mine = await makeTeam(small)
    const { id, secret: key } = await makeKey(small, mine)
    const by = { cookie: await makeSession(small, mine), headers: { origin: small.baseUrl } }
    const change = (requests: number) =>
      small.call('PATCH', `/v1/keys/${id}`, { ...by, body: { policy: { rates: { requests } } } })
    expect((await change(9)).status).toBe(200)
    const ask = () => small.call('GET', '/v1/units', { key })
    expect((await untilRefused(ask)).passed).toBe(9)
    const message = expect.stringContaining('80') as string
    expect(await change(81)).toMatchObject({
      status: 400,
      body: { error: { details: [{ path: 'policy.rates.requests', message }] } },
    })
  })
})

const creating = (name: string, more: object = {}) => ({
  spec: { name, image: 'node:22', ...more },
  wait: false,
})

describe('the rate limit on creations', () => {
  let count = 0
  let roomy: TestTeam
  const create = (body: object = creating(`unit-${count++}`)) =>
    service.call('POST', '/v1/units', { key: roomy.key, body })

  beforeEach(async () => {
    roomy = await makeTeam(service, { maxConcurrentUnits: 1000, allowedSizes: ['nano', 'small'] })
  })

  test('allows 30 a minute, and does not limit reads', async () => {
    const { passed, refusal } = await untilRefused(() => create())
    expect(passed).toBe(30)
    expect(boundsIn(service.logged)).toEqual([['creations a minute', roomy.teamId]])
    expect((await service.call('GET', '/v1/units', { key: roomy.key })).status).toBe(200)
    await expectTrueRetryAfter(refusal, () => create())
  })

  test('does not count refused creations, also with concurrent calls', async () => {
    expect((await create(creating('taken'))).status).toBe(201)
    const stack = 'taken'
    const refused = [
      { status: 400, body: {} },
      { status: 402, body: creating('large', { size: 'large' }) },
      { status: 409, body: { ...creating('taken'), stack } },
    ]
    const asked = refused.flatMap((one) => Array.from({ length: 20 }, () => one))
    const answers = await Promise.all(asked.map(({ body }) => create(body)))
    // A call that comes while thirty others are being checked is told to wait, because at most thirty are.
    for (const [index, { status }] of answers.entries()) expect([asked[index]?.status, 429]).toContain(status)
    for (const { status, body } of asked) expect((await create(body)).status).toBe(status)
    const { passed } = await untilRefused(() => create())
    expect(passed).toBe(29)
  })

  test('is not the only limit on refused creations: they count as requests', async () => {
    const { passed } = await untilRefused(() => create({}))
    expect(passed).toBe(300)
  })

  test('counts a creation that failed in the infrastructure, because it took work', async () => {
    service.engine.fail('pull', 'image_not_found')
    expect((await create({ ...creating('gone'), wait: true })).status).toBe(502)
    expect((await untilRefused(() => create())).passed).toBe(29)
  })

  test('counts forks, and does not count stacks, keys and teams', async () => {
    const { id } = await makeUnit(service, roomy)
    const cookie = await makeSession(service, roomy)
    const headers = { origin: service.baseUrl }
    for (const path of ['/v1/stacks', '/v1/keys', '/v1/teams']) {
      for (let made = 0; made < 31; made++) {
        const { status } = await service.call('POST', path, { cookie, headers, body: { name: `m-${made}` } })
        // A plan has its own limits.
        expect([201, 402]).toContain(status)
      }
    }
    const { passed } = await untilRefused(() =>
      service.call('POST', `/v1/units/${id}/fork`, { key: roomy.key, body: { wait: false } }),
    )
    // The unit was created with the same key.
    expect(passed).toBe(29)
    expect((await create()).status).toBe(429)
  })
})

test('a key may run 120 execs a minute, streamed or not', async () => {
  const { id } = await makeUnit(service, team)
  const body = { cmd: ['true'] }
  const ask = () => service.call('POST', `/v1/units/${id}/exec`, { key: team.key, body })
  const streamed = await service.fetch('POST', `/v1/units/${id}/exec`, {
    key: team.key,
    body,
    headers: { accept: 'text/event-stream' },
  })
  await streamed.text()
  const { passed, refusal } = await untilRefused(ask)
  expect(passed).toBe(119)
  await expectTrueRetryAfter(refusal, ask)
})

test('the rate limit allows no larger burst around the edge of a minute', async () => {
  const ask = () => service.call('GET', '/v1/units', { key: team.key })
  service.clock.advance(59 * SECOND)
  for (let asked = 0; asked < 300; asked++) expect((await ask()).status).toBe(200)
  service.clock.advance(2 * SECOND)
  expect((await ask()).status).toBe(429)
})

test('a key does not use up the rate limit of another key of its team', async () => {
  const other = await makeKey(service, team)
  await untilRefused(() => service.call('GET', '/v1/units', { key: team.key }))
  expect((await service.call('GET', '/v1/units', { key: other.secret })).status).toBe(200)
})

test('a caller who knows the beginning of a key that is in use does not use up its rate limit', async () => {
  const ask = () => service.call('GET', '/v1/units', { key: team.key })
  expect((await ask()).status).toBe(200)
  const guessed = team.key.slice(0, -43) + newToken('key').token.slice(-43)
  for (let tries = 0; tries < 20; tries++) {
    expect((await service.call('GET', '/v1/units', { key: guessed })).status).toBe(401)
  }
  expect((await untilRefused(ask)).passed).toBe(299)
})

test('a caller who guesses keys is rate limited, and honest callers from the same address are not', async () => {
  expect((await service.call('GET', '/v1/units', { key: team.key })).status).toBe(200)
  const guess = (headers: Record<string, string> = {}) =>
    service.call('GET', '/v1/units', { key: newToken('key').token, headers })
  const { passed, refusal } = await untilRefused(guess)
  expect(passed).toBe(FAILURES_PER_MINUTE)
  expect(boundsIn(service.logged)).toEqual([['failed credentials', '127.0.0.1']])
  expect((await guess({ 'x-forwarded-for': '192.0.2.1' })).status).toBe(429)
  expect((await service.call('GET', '/v1/units', { key: team.key })).status).toBe(200)
  await expectTrueRetryAfter(refusal, guess)
})

test('a valid key is accepted at its first use from an address that others guess from', async () => {
  const { refusal } = await untilRefused(() =>
    service.call('GET', '/v1/units', { key: newToken('key').token }),
  )
  expect(refusal.status).toBe(429)
  expect((await service.call('GET', '/v1/units', { key: team.key })).status).toBe(200)
})

test('a route without secrets to guess is not limited by failed guesses', async () => {
  await untilRefused(() => service.call('GET', '/v1/units', { key: 'nonsense' }))
  expect((await service.fetch('GET', '/v1/openapi.json')).status).toBe(200)
  // Nothing is sold here, so an event of the provider gets a 404.
  expect((await service.call('POST', '/v1/webhooks/stripe', { body: '{}' })).status).toBe(404)
  expect((await service.call('GET', `/v1/invites/${'x'.repeat(40)}`)).status).toBe(429)
})

test('behind a trusted proxy, guesses are limited by the address that the proxy names', async () => {
  const proxied = await startService({ trustedProxies: ['127.0.0.0/8', '10.0.0.1'], loops: false })
  const guess = async (forwarded: string) => {
    const headers = { 'x-forwarded-for': forwarded }
    return (await proxied.call('GET', '/v1/units', { key: 'nonsense', headers })).status
  }
  try {
    for (let tries = 0; tries < FAILURES_PER_MINUTE; tries++) {
      // The address before it was written by the caller.
      expect(await guess(`203.0.113.${tries}, 192.0.2.1`)).toBe(401)
    }
    expect(await guess('203.0.113.250, 192.0.2.1')).toBe(429)
    expect(await guess('192.0.2.1, 10.0.0.1')).toBe(429)
    expect(await guess('::ffff:192.0.2.1')).toBe(429)
    expect(await guess('192.0.2.1,')).toBe(429)
    for (const other of ['192.0.2.2', '192.0.2.1, 2001:db8::1', '192.0.2.1, nonsense', ',']) {
      expect([other, await guess(other)]).toEqual([other, 401])
    }
  } finally {
    await proxied.close()
  }
})
