// Spec 5: which callers may call, and for which team.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureFirstAccount } from '../../src/domain/credentials/first-account.ts'
import { newToken } from '../../src/domain/credentials/token.ts'
import { adoptClockJump } from '../../src/domain/time/clock-jumps.ts'
import { DAY, HOUR } from '../../src/lib/clock.ts'
import { revokeCredential } from '../../src/store/credentials.ts'
import { makeKey, makeSession, makeTeam, makeUnit } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => await service.close())

const list = (headers: Record<string, string>) => service.call('GET', '/v1/units', { headers })

describe('a call is refused with 401 (spec 5.5) for', () => {
  const unknownKey = newToken('key').token
  test.each([
    ['nothing', {}],
    ['an empty header', { authorization: '' }],
    ['a scheme alone', { authorization: 'Bearer' }],
    ['another scheme', { authorization: 'Basic dXNlcjpwYXNz' }],
    ['a key of another service', { authorization: 'Bearer sk-123' }],
    ['a key cut short', { authorization: `Bearer ${unknownKey.slice(0, -1)}` }],
    ['an unknown key', { authorization: `Bearer ${unknownKey}` }],
    ['a sign-in token', { authorization: `Bearer ${newToken('signIn').token}` }],
    ['an unknown session', { cookie: `berth_session=${newToken('session').token}` }],
    ['a session as a key', { authorization: `Bearer ${newToken('session').token}` }],
  ])('%s', async (_title, headers) => {
    const answer = await list(headers)
    expect(answer).toMatchObject({ status: 401, body: { error: { code: 'unauthorized' } } })
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
  })

  test('a known prefix with a wrong secret', async () => {
    const { key } = await makeTeam(service)
    const other = newToken('key').token
    const forged = key.slice(0, -43) + other.slice(-43)
    expect((await list({ authorization: `Bearer ${forged}` })).status).toBe(401)
  })

  test('a revoked key, from the next call on', async () => {
    const { key, keyId, teamId } = await makeTeam(service)
    expect((await list({ authorization: `Bearer ${key}` })).status).toBe(200)
    await revokeCredential(service.app.db, { teamId, id: keyId, at: service.clock.now() })
    expect((await list({ authorization: `Bearer ${key}` })).status).toBe(401)
  })

  test('a key whose policy has expired', async () => {
    const expiresAt = new Date(service.clock.now().getTime() + HOUR).toISOString()
    const { key } = await makeTeam(service, { expiresAt })
    expect((await list({ authorization: `Bearer ${key}` })).status).toBe(200)
    service.clock.advance(HOUR)
    expect((await list({ authorization: `Bearer ${key}` })).status).toBe(401)
  })

  test('no valid key, also not with the scheme in lower case', async () => {
    const { key } = await makeTeam(service)
    expect((await list({ authorization: `bearer ${key}` })).status).toBe(200)
  })
})

test('only the hash of a key is stored, and no key is logged', async () => {
  const { key } = await makeTeam(service)
  await list({ authorization: `Bearer ${key}` })
  const stored = await service.app.db.selectFrom('credentials').selectAll().execute()
  expect(stored.length).toBeGreaterThan(0)
  const secret = key.slice(-43)
  expect(JSON.stringify(stored)).not.toContain(secret)
  expect(service.logged.join('')).not.toContain(secret)
})

test('the first account is created once by concurrent starts, and its key works', async () => {
  const fresh = await startService()
  try {
    const ask = () => ensureFirstAccount({ ...fresh.app, freeCreditsCents: 500 })
    const answers = await Promise.all([1, 2, 3].map(ask))
    const keys = answers.flatMap((answer) => (answer ? [answer.apiKey] : []))
    expect(keys).toHaveLength(1)
    expect(await ask()).toBeNull()
    const quota = await fresh.call('GET', '/v1/quota', { key: keys[0] ?? '' })
    expect(quota.body).toMatchObject({ creditBalanceCents: 500 })
    const unit = await makeUnit(fresh, { key: keys[0] ?? '' }, { size: 'large', sleep: 'never' })
    expect(unit.state).toBe('running')
  } finally {
    await fresh.close()
  }
})

describe('a unit of another team (spec 5.5, S1)', () => {
  const operations: [method: string, path: string, body?: unknown][] = [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/stop'],
    ['POST', '/start'],
    ['POST', '/exec', { cmd: ['true'] }],
    ['GET', '/logs'],
    ['GET', '/logs?follow=true'],
    ['GET', '/files?path=/a'],
    ['PUT', '/files?path=/a', 'x'],
    ['POST', '/files', { path: '/a', contentBase64: '' }],
  ]

  test.each(operations)(
    'is refused with 403 for %s /v1/units/{id}%s, and not changed',
    async (method, path, body) => {
      const victim = await makeTeam(service)
      const stranger = await makeTeam(service)
      const env = { CANARY: 'canary-of-the-victim' }
      const before = await makeUnit(service, victim, { name: 'canary-name', env })
      const asked = service.engine.calls.length
      const answer = await service.call(method, `/v1/units/${before.id}${path}`, { key: stranger.key, body })
      expect(answer).toMatchObject({ status: 403, body: { error: { code: 'forbidden' } } })
      expect(JSON.stringify(answer.body)).not.toMatch(/canary|node:22|10\.99/)
      expect(JSON.stringify(answer.body)).not.toContain(victim.teamId)
      const after = await service.call<object>('GET', `/v1/units/${before.id}`, { key: victim.key })
      expect(after.body).toMatchObject({
        state: 'running',
        sleepsAt: before.sleepsAt,
        lastUsedAt: before.lastUsedAt,
      })
      const mine = service.engine.calls.slice(asked).filter(({ id }) => id === before.id)
      expect(mine.filter(({ operation }) => operation !== 'list')).toEqual([])
      const rows = await service.app.db
        .selectFrom('audit')
        .select(['team_id', 'status'])
        .where('target', '=', before.id)
        .where('status', '=', 403)
        .execute()
      expect(rows).toEqual([{ team_id: stranger.teamId, status: 403 }])
    },
  )

  test('is not listed, also not by the id of its stack', async () => {
    const victim = await makeTeam(service)
    const stranger = await makeTeam(service)
    const unit = await makeUnit(service, victim)
    for (const query of ['', '?all=true', `?stack=${unit.stackId}`, `?stack=${unit.name}`]) {
      const { body } = await service.call('GET', `/v1/units${query}`, { key: stranger.key })
      expect(JSON.stringify(body)).not.toContain(unit.id)
    }
  })

  test('does not share a stack with one of the same stack name', async () => {
    const victim = await makeTeam(service)
    const stranger = await makeTeam(service)
    const make = (key: string) =>
      service.call<{ units: { stackId: string }[] }>('POST', '/v1/units', {
        key,
        body: { spec: { name: 'web', image: 'node:22' }, stack: 'shared-name' },
      })
    const [one, other] = [await make(victim.key), await make(stranger.key)]
    expect([one.status, other.status]).toEqual([201, 201])
    expect(one.body.units[0]?.stackId).not.toBe(other.body.units[0]?.stackId)
  })
})

describe('x-berth-team', () => {
  test('a key works for its own team only', async () => {
    const one = await makeTeam(service)
    const other = await makeTeam(service)
    const ask = (team: string) => list({ authorization: `Bearer ${one.key}`, 'x-berth-team': team })
    expect((await ask(one.teamId)).status).toBe(200)
    expect((await ask(other.teamId)).status).toBe(403)
  })

  test('a session acts in the team it names, and stays in it', async () => {
    const one = await makeTeam(service)
    const other = await makeTeam(service)
    await service.app.db
      .insertInto('memberships')
      .values({ team_id: other.teamId, user_id: one.userId, role: 'member', joined_at: service.clock.now() })
      .execute()
    const unit = await makeUnit(service, other)
    const cookie = await makeSession(service, one)
    const ids = async (headers: Record<string, string>) => {
      const answer = await service.call<{ units: { id: string }[] }>('GET', '/v1/units', { cookie, headers })
      return answer.body.units.map(({ id }) => id)
    }
    expect(await ids({})).toEqual([])
    expect(await ids({ 'x-berth-team': other.teamId })).toEqual([unit.id])
    expect(await ids({})).toEqual([unit.id])
    const outsider = await makeTeam(service)
    const refused = await service.call('GET', '/v1/units', {
      cookie,
      headers: { 'x-berth-team': outsider.teamId },
    })
    expect(refused.status).toBe(403)
  })
})

test('a key shows when it was last used, also after the clock was set back', async () => {
  const { userId, teamId } = await makeTeam(service)
  const key = await makeKey(service, { teamId, userId })
  const lastUsed = async () =>
    await service.app.db
      .selectFrom('credentials')
      .select('last_used_at')
      .where('id', '=', key.id)
      .executeTakeFirstOrThrow()
  expect((await lastUsed()).last_used_at).toBeNull()
  await list({ authorization: `Bearer ${key.secret}` })
  const first = (await lastUsed()).last_used_at
  expect(first).toBeInstanceOf(Date)
  service.clock.advance(DAY)
  await list({ authorization: `Bearer ${key.secret}` })
  expect((await lastUsed()).last_used_at?.getTime()).toBeGreaterThan((first?.getTime() ?? 0) + HOUR)
  // The clock of the host is set back by more than that, and the service time follows.
  service.clock.jump(-2 * DAY)
  await adoptClockJump(service.app)
  await list({ authorization: `Bearer ${key.secret}` })
  expect((await lastUsed()).last_used_at?.getTime()).toBeLessThan(first?.getTime() ?? 0)
})
