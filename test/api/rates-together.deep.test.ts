// Spec 8 and reliability S25: the rate limits apply to all server processes together.

import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createServer } from '../../src/api/server.ts'
import { type App, createApp } from '../../src/app.ts'
import { createRateLimits, forgetOldRates, readRates } from '../../src/domain/credentials/rate-limit.ts'
import { unrestrictedPolicy } from '../../src/domain/credentials/unrestricted-policy.ts'
import { newToken } from '../../src/domain/credentials/token.ts'
import { adoptClockJump } from '../../src/domain/time/clock-jumps.ts'
import { HOUR, MINUTE, SECOND } from '../../src/lib/clock.ts'
import { makeKey, makeTeam, type TestTeam } from '../support/make.ts'
import { contractRates, type Service, startService } from '../support/service.ts'

let service: Service
let other: { app: App; baseUrl: string; close: () => Promise<void> }
let team: TestTeam

beforeEach(async () => {
  service = await startService({ rates: contractRates, loops: false })
  other = await startBeside()
  team = await makeTeam(service, { maxConcurrentUnits: 1000, allowedSizes: ['nano'] })
})
afterEach(async () => {
  await other.close()
  await service.close()
})

/** Another server process, which shares the database with the first and nothing else. */
async function startBeside(): Promise<typeof other> {
  const app = createApp({ ...service.app, clock: service.clock })
  const server = createServer(app)
  await server.listen({ host: '127.0.0.1', port: 0 })
  const { port } = server.server.address() as AddressInfo
  return { app, baseUrl: `http://127.0.0.1:${port}`, close: async () => await server.close() }
}

const unit = JSON.stringify({ spec: { name: 'web', image: 'node:22', size: 'nano' }, wait: false })

type Asked = { status: number; retryAfterS: number }

/** Makes `count` calls in turns at both servers, some forty at once. */
async function ask(count: number, method = 'GET', key = team.key, body = unit): Promise<Asked[]> {
  const answers: Asked[] = []
  let asked = 0
  const one = async () => {
    while (asked < count) {
      const server = [service, other][asked % 2] ?? service
      asked += 1
      const response = await fetch(`${server.baseUrl}/v1/units`, {
        method,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(method === 'POST' ? { body } : {}),
      })
      await response.text()
      answers.push({ status: response.status, retryAfterS: Number(response.headers.get('retry-after')) })
    }
  }
  await Promise.all(Array.from({ length: 40 }, one))
  return answers
}

const passedOf = (answers: Asked[]) => answers.filter(({ status }) => status !== 429).length

describe('the rate limits of two servers together', () => {
  test('allow 300 requests a minute for a key, with an exact retry-after', async () => {
    const answers = await ask(400)
    expect(passedOf(answers)).toBe(300)
    const latest = Math.max(...answers.map(({ retryAfterS }) => retryAfterS))
    expect(latest).toBeLessThanOrEqual(61)
    service.clock.advance((latest - 2) * SECOND)
    const early = await ask(2)
    for (const { status, retryAfterS } of early.filter((answer) => answer.status === 429)) {
      expect([status, retryAfterS <= 3]).toEqual([429, true])
    }
    service.clock.advance(3 * SECOND)
    expect(passedOf(await ask(2))).toBe(2)
  })

  test('allow 30 creations a minute, and reads beside them', async () => {
    expect(passedOf(await ask(50, 'POST'))).toBe(30)
    expect(passedOf(await ask(10))).toBe(10)
  })

  test('do not count refused creations, on whichever server they were counted', async () => {
    expect((await ask(100, 'POST', team.key, '{}')).map(({ status }) => status)).toContain(400)
    const tooLarge = unit.replace('nano', 'large')
    for (const { status } of await ask(60, 'POST', team.key, tooLarge)) expect([402, 429]).toContain(status)
    // By then both servers know what the other gave back.
    service.clock.advance(SECOND)
    expect(passedOf(await ask(50, 'POST'))).toBe(30)
  })

  test('learn within a second that another server gave creations back', async () => {
    const limits = createRateLimits(service.app)
    const elsewhere = createRateLimits(other.app)
    const counted = []
    for (let made = 0; made < 30; made++) counted.push(await limits.spendCreation(team.keyId))
    await expect(elsewhere.spendCreation(team.keyId)).rejects.toMatchObject({ status: 429 })
    await counted[0]?.()
    service.clock.advance(SECOND)
    await elsewhere.spendCreation(team.keyId)
    await expect(elsewhere.spendCreation(team.keyId)).rejects.toMatchObject({ status: 429 })
  })

  test('allow no burst around the edge of a minute', async () => {
    service.clock.advance(59 * SECOND)
    expect(passedOf(await ask(300))).toBe(300)
    service.clock.advance(2 * SECOND)
    expect(passedOf(await ask(20))).toBe(0)
  })

  test('apply to a server that has just started', async () => {
    await ask(300)
    const late = await startBeside()
    const headers = { authorization: `Bearer ${team.key}` }
    expect((await fetch(`${late.baseUrl}/v1/units`, { headers })).status).toBe(429)
    await late.close()
  })

  test.each([
    ['ahead', HOUR],
    ['back', -HOUR],
  ])('neither reset nor lock when the wall clock is set %s', async (_where, ms) => {
    expect(passedOf(await ask(310))).toBe(300)
    service.clock.jump(ms)
    for (const { app } of [service, other]) await adoptClockJump(app)
    expect(passedOf(await ask(10))).toBe(0)
    const late = await startBeside()
    const fresh = createRateLimits(service.app)
    await expect(fresh.spend(team.keyId, 'requests')).rejects.toMatchObject({ status: 429 })
    await late.close()
    service.clock.advance(62 * SECOND)
    expect(passedOf(await ask(10))).toBe(10)
  })
})

// Reliability L7: fifty keys in the deep tier. How long the answers take is for the benchmark of requests.
test('many keys that call beyond their limit get their calls answered and all others refused with 429, never a fault', async () => {
  const keys = [team.key]
  while (keys.length < 50) keys.push((await makeKey(service, team)).secret)
  const answers = await Promise.all(
    keys.map(async (key) => await ask(contractRates.requests + 20, 'GET', key)),
  )
  for (const ofKey of answers) {
    const statuses = ofKey.map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(contractRates.requests)
    expect(statuses.filter((status) => status === 429)).toHaveLength(20)
  }
})

test('a caller who knows only the prefix of a key does not use up its rate limit', async () => {
  const forged = team.key.slice(0, -43) + newToken('key').token.slice(-43)
  expect((await ask(100, 'GET', forged)).every(({ status }) => status === 401)).toBe(true)
  expect(passedOf(await ask(310))).toBe(300)
})

test('what is left of each rate limit can be read, and old rows are deleted', async () => {
  await ask(10)
  await ask(5, 'POST')
  const left = await readRates(service.app, { credentialId: team.keyId, policy: unrestrictedPolicy })
  expect(left).toMatchObject([
    { name: 'requests', limit: 300, remaining: 285 },
    { name: 'creations', limit: 30, remaining: 25 },
    { name: 'execs', limit: 120, remaining: 120 },
  ])
  const resetsAt = Date.parse(left[0]?.resetsAt ?? '')
  expect(resetsAt - service.app.clock.now().getTime()).toBeGreaterThan(MINUTE - 20 * SECOND)
  const rows = async () => await service.app.db.selectFrom('rate_windows').selectAll().execute()
  await forgetOldRates(service.app)
  expect(await rows()).toHaveLength(1)
  service.clock.advance(11 * MINUTE)
  await forgetOldRates(service.app)
  expect(await rows()).toEqual([])
  expect(passedOf(await ask(310))).toBe(300)
})
