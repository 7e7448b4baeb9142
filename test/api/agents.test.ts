// Keys and agents over HTTP (spec 2.8, 2.9, 4.5, 5.3): people create, change and revoke them, and every caller can
// list them.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Agent, AgentDryRun, AgentList, KeyCreated, KeyList } from '../../src/contract/agent.ts'
import type { AuditList } from '../../src/contract/audit.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { MINUTE } from '../../src/lib/clock.ts'
import type { Role } from '../../src/store/teams.ts'
import {
  insertConnectedClient,
  makeMember,
  makeSession,
  makeTeam,
  makeUnit,
  type TestTeam,
} from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

type By = { key?: string; cookie?: string; team?: string }

let service: Service
let team: TestTeam
let cookie: string

beforeAll(async () => {
  service = await startService({ rates: { requests: 10_000, creations: 1000, execs: 1000 } })
})
afterAll(async () => await service.close())
beforeEach(async () => {
  team = await makeTeam(service)
  cookie = await makeSession(service, team)
})

const post = async (body: unknown, by: By = { cookie }) =>
  await service.call<KeyCreated>('POST', '/v1/keys', { ...named(by), body })
const patch = async (id: string, body: unknown, by: By = { cookie }) =>
  await service.call<{ agent: Agent }>('PATCH', `/v1/keys/${id}`, { ...named(by), body })
const revoke = async (id: string, by: By = { cookie }) =>
  await service.call('DELETE', `/v1/keys/${id}`, named(by))
const keys = async () => (await service.call<KeyList>('GET', '/v1/keys', { key: team.key })).body.keys
const agents = async () => (await service.call<AgentList>('GET', '/v1/agents', { key: team.key })).body

function named({ team: teamId, ...by }: By) {
  const headers = { origin: service.baseUrl, ...(teamId === undefined ? {} : { 'x-berth-team': teamId }) }
  return { ...by, headers }
}

/** Another member of the team. */
async function colleague(role: Role): Promise<{ cookie: string; team: string }> {
  return { cookie: (await makeMember(service, team.teamId, role)).cookie, team: team.teamId }
}

describe('POST /v1/keys', () => {
  it('creates a key that works, and shows its secret only once', async () => {
    const { status, body } = await post({ name: 'for the agent' })
    expect(status).toBe(201)
    expect(body.secret).toMatch(/^berth_live_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/)
    expect(body.key).toMatchObject({
      kind: 'key',
      name: 'for the agent',
      policy: { maxConcurrentUnits: 5, dailySpendCapCents: 1000, maxSleep: 'never', expiresAt: null },
      createdBy: { name: 'Person', email: team.email },
      client: null,
      agent: null,
      lastUsedAt: null,
      revokedAt: null,
    })
    expect(body.secret.startsWith(body.key.prefix ?? '-')).toBe(true)
    expect((await service.call('GET', '/v1/units', { key: body.secret })).status).toBe(200)
    const [listed] = await keys()
    expect(listed).toMatchObject({ ...body.key, lastUsedAt: expect.any(String) })
    const log = await service.call<AuditList>('GET', '/v1/audit', { cookie })
    expect(log.body.events.find(({ action }) => action === 'key.create')).toMatchObject({
      target: body.key.id,
      input: { name: 'for the agent' },
      credential: { kind: 'session' },
    })
    const secret = body.secret.slice((body.key.prefix ?? '').length + 1)
    expect(JSON.stringify([await keys(), log.body]) + service.logged.join('')).not.toContain(secret)
  })

  it('applies the given policy, and defaults for the rest', async () => {
    const { body } = await post({ name: 'small', policy: { allowedSizes: ['nano'], maxSleep: '1h' } })
    expect(body.key.policy).toMatchObject({ allowedSizes: ['nano'], maxSleep: '1h', maxConcurrentUnits: 5 })
    const spec = { name: 'big', image: 'node:22', size: 'large' }
    const refused = await service.call('POST', '/v1/units', { key: body.secret, body: { spec } })
    expect([refused.status, refused.body]).toMatchObject([402, { error: { code: 'policy_violation' } }])
  })

  it('returns the same key for a repeated Idempotency-Key of the same caller only', async () => {
    const again = async (by: By) => {
      const { headers, ...rest } = named(by)
      const body = { name: 'once' }
      const given = { ...rest, headers: { ...headers, 'idempotency-key': 'the first' }, body }
      return await service.call<KeyCreated>('POST', '/v1/keys', given)
    }
    const [first, second] = [await again({ cookie }), await again({ cookie })]
    expect([first.status, second.status]).toEqual([201, 201])
    expect(second.body).toEqual(first.body)
    const other = await again(await colleague('owner'))
    expect(other.status).toBe(201)
    expect(other.body.secret).not.toBe(first.body.secret)
    expect((await again({ key: team.key })).status).toBe(403)
    const stored = await service.app.db.selectFrom('idempotency_keys').selectAll().execute()
    expect(JSON.stringify(stored)).not.toContain(first.body.secret.slice(-43))
  })

  it.each([
    {},
    { name: '' },
    { name: 'x'.repeat(81) },
    { name: 'x', policy: { maxConcurrentUnits: -1 } },
    { name: 'x', policy: { allowedSizes: ['huge'] } },
    { name: 'x', policy: { maxSleep: '90' } },
    { name: 'x', policy: { expiresAt: 'tomorrow' } },
    { name: 'x', policy: { expiresAt: '2020-01-01T00:00:00Z' } },
    { name: 'x', admin: true },
  ])('refuses the body %j', async (body) => {
    expect(await post(body)).toMatchObject({ status: 400, body: { error: { code: 'validation' } } })
  })

  it('creates as many keys as the plan has seats for, also with concurrent requests', async () => {
    const { db } = service.app
    await db.updateTable('teams').set({ plan: 'hobby' }).where('id', '=', team.teamId).execute()
    const made = await Promise.all(Array.from({ length: 20 }, (_, i) => post({ name: `key ${i}` })))
    // The first key of the team takes a seat, too.
    expect(made.filter(({ status }) => status === 201)).toHaveLength(4)
    const refused = made.find(({ status }) => status !== 201)
    expect(refused).toMatchObject({
      status: 402,
      body: { error: { code: 'quota_exceeded', details: { field: 'seats', used: 5, max: 5 } } },
    })
    expect((await agents()).seats).toEqual({ used: 5, max: 5 })
    const one = made.find(({ status }) => status === 201)?.body.key.id ?? ''
    await revoke(one)
    expect((await post({ name: 'in its place' })).status).toBe(201)
    const soon = new Date(service.app.clock.now().getTime() + MINUTE).toISOString()
    await patch((await keys())[0]?.id ?? '', { policy: { expiresAt: soon } })
    service.clock.advance(MINUTE)
    expect((await agents()).seats).toEqual({ used: 4, max: 5 })
  })
})

describe('the expiry of a key', () => {
  it('is accepted with any offset, and shown in UTC', async () => {
    const { body } = await post({ name: 'x', policy: { expiresAt: '2099-07-01T14:00:00+02:00' } })
    expect(body.key.policy.expiresAt).toBe('2099-07-01T12:00:00.000Z')
    const changed = await patch(body.key.id, { policy: { expiresAt: '2099-08-01T00:00:00-01:00' } })
    expect(changed.body.agent.policy.expiresAt).toBe('2099-08-01T01:00:00.000Z')
  })

  it('cannot be in the past, neither at first nor by a change', async () => {
    const { body } = await post({ name: 'x' })
    const past = service.app.clock.now().toISOString()
    expect(await patch(body.key.id, { policy: { expiresAt: past } })).toMatchObject({
      status: 400,
      body: { error: { details: [{ path: 'policy.expiresAt', message: expect.stringContaining('later') }] } },
    })
    expect((await keys()).map(({ policy }) => policy.expiresAt)).toEqual([null, null])
  })
})

it('a number for maxSleep is refused with the string to send instead', async () => {
  expect(await post({ name: 'x', policy: { maxSleep: 30 } })).toMatchObject({
    status: 400,
    body: {
      error: { message: 'policy.maxSleep: must be a string such as "30m", not the number 30' },
    },
  })
})

describe('PATCH /v1/keys/{id}', () => {
  it('changes only the named fields of the policy, which apply from the next call on', async () => {
    const { body } = await post({ name: 'before', policy: { allowedSizes: ['nano'], maxConcurrentUnits: 1 } })
    await makeUnit(service, { key: body.secret }, { size: 'nano' })
    const { id } = body.key
    const changed = await patch(id, { policy: { maxConcurrentUnits: 0 } })
    expect(changed).toMatchObject({
      status: 200,
      body: { agent: { name: 'before', policy: { allowedSizes: ['nano'], maxConcurrentUnits: 0 } } },
    })
    const spec = { name: 'another', image: 'node:22', size: 'nano' }
    const refused = await service.call('POST', '/v1/units', { key: body.secret, body: { spec } })
    expect(refused).toMatchObject({ status: 402, body: { error: { code: 'quota_exceeded' } } })
    expect(await patch(id, { name: 'after' })).toMatchObject({
      status: 200,
      body: { agent: { name: 'after' } },
    })
    expect(await patch(id, {})).toMatchObject({ status: 200, body: { agent: { name: 'after' } } })
  })

  it('with an expiry ends the key at that time, and its units live on', async () => {
    const { body } = await post({ name: 'short-lived' })
    const unit = await makeUnit(service, { key: body.secret })
    const expiresAt = new Date(service.app.clock.now().getTime() + MINUTE).toISOString()
    await patch(body.key.id, { policy: { expiresAt } })
    service.clock.advance(MINUTE)
    const refused = await service.call('GET', '/v1/units', { key: body.secret })
    expect(refused).toMatchObject({
      status: 401,
      body: { error: { code: 'unauthorized', message: expect.stringContaining(`expired at ${expiresAt}`) } },
    })
    const still = await service.call('GET', `/v1/units/${unit.id}`, { key: team.key })
    expect(still.body).toMatchObject({ state: 'running' })
  })

  it('refuses to change a revoked key', async () => {
    const { body } = await post({ name: 'gone' })
    await revoke(body.key.id)
    expect(await patch(body.key.id, { name: 'back' })).toMatchObject({
      status: 409,
      body: { error: { code: 'invalid_state' } },
    })
    expect((await keys()).find(({ id }) => id === body.key.id)).toMatchObject({ name: 'gone' })
  })
})

describe('DELETE /v1/keys/{id}', () => {
  it('revokes the key at once, shows that in lists, and can be repeated', async () => {
    const { body } = await post({ name: 'lost' })
    expect(await revoke(body.key.id)).toMatchObject({ status: 200, body: { ok: true } })
    expect((await service.call('GET', '/v1/units', { key: body.secret })).status).toBe(401)
    const at = async () => (await keys()).find(({ id }) => id === body.key.id)?.revokedAt
    const first = await at()
    expect(first).toEqual(expect.any(String))
    expect(await revoke(body.key.id)).toMatchObject({ status: 200, body: { ok: true } })
    expect(await at()).toBe(first)
  })
})

describe('the dry run of a policy', () => {
  const dryRun = async (id: string, policy: object, by: By = { cookie }) =>
    await service.call<AgentDryRun>('POST', `/v1/agents/${id}/dry-run`, { ...named(by), body: { policy } })
  const states = async (ids: string[]) =>
    await Promise.all(
      ids.map(async (id) => {
        const { body } = await service.call<Unit>('GET', `/v1/units/${id}`, { key: team.key })
        return body.state
      }),
    )

  it('lists the units that the change would stop, and changes nothing', async () => {
    const { body } = await post({ name: 'builder', policy: { maxConcurrentUnits: 3 } })
    const units: string[] = []
    for (let made = 0; made < 3; made += 1) units.push((await makeUnit(service, { key: body.secret })).id)
    // A unit of another key, which the change does not concern.
    await makeUnit(service, team)
    const [, ...newest] = units

    const { status, body: told } = await dryRun(body.key.id, { maxConcurrentUnits: 1 })
    expect(status).toBe(200)
    expect(told.stops.map(({ id }) => id)).toEqual(newest)
    expect((await dryRun(body.key.id, { dailySpendCapCents: 0 })).body.stops.map(({ id }) => id)).toEqual(
      units,
    )
    expect((await dryRun(body.key.id, { allowedSizes: ['nano'] })).body.stops).toEqual([])
    expect(await states(units)).toEqual(['running', 'running', 'running'])
    expect((await keys()).find(({ id }) => id === body.key.id)?.policy.maxConcurrentUnits).toBe(3)

    await patch(body.key.id, { policy: { maxConcurrentUnits: 1 } })
    await expect.poll(() => states(units)).toEqual(['running', 'stopped', 'stopped'])
    const { events } = (await service.call<AuditList>('GET', '/v1/audit?action=agent.dryRun', { cookie }))
      .body
    expect(events).toHaveLength(3)
    expect(events.at(-1)).toMatchObject({ target: body.key.id, input: { policy: { maxConcurrentUnits: 1 } } })
  })

  it('is refused for a revoked key, a key of another team or an invalid policy', async () => {
    await revoke(team.keyId)
    expect(await dryRun(team.keyId, { maxConcurrentUnits: 1 })).toMatchObject({ status: 409 })
    const other = await makeTeam(service)
    expect(await dryRun(other.keyId, { maxConcurrentUnits: 1 })).toMatchObject({ status: 403 })
    expect(await dryRun(other.keyId, { maxConcurrentUnits: -1 })).toMatchObject({ status: 400 })
  })
})

describe('keys and agents (spec 5.3, 5.6)', () => {
  it('cannot be created, changed or revoked by a key, also not by itself', async () => {
    const by = { key: team.key }
    expect(await post({ name: 'more' }, by)).toMatchObject({
      status: 403,
      body: { error: { code: 'forbidden' } },
    })
    expect((await patch(team.keyId, { policy: { maxConcurrentUnits: 99 } }, by)).status).toBe(403)
    expect((await revoke(team.keyId, by)).status).toBe(403)
    expect((await service.call('GET', '/v1/units', by)).status).toBe(200)
  })

  it.each([
    ['owner', 200],
    ['admin', 200],
    ['member', 403],
  ] as const)('of others are changed or revoked by an %s with status %d', async (role, status) => {
    const by = await colleague(role)
    expect((await patch(team.keyId, { name: 'theirs' }, by)).status).toBe(status)
    expect((await revoke(team.keyId, by)).status).toBe(status)
  })

  it('a member can change and revoke their own keys and agents', async () => {
    const by = await colleague('member')
    const { status, body } = await post({ name: 'mine' }, by)
    expect(status).toBe(201)
    expect((await patch(body.key.id, { name: 'mine still' }, by)).status).toBe(200)
    expect((await revoke(body.key.id, by)).status).toBe(200)
  })

  it('cannot be changed or revoked by a person of another team', async () => {
    const stranger = await makeSession(service, await makeTeam(service))
    for (const answer of [
      await patch(team.keyId, { name: 'x' }, { cookie: stranger }),
      await revoke(team.keyId, { cookie: stranger }),
    ])
      expect(answer).toMatchObject({ status: 403, body: { error: { code: 'forbidden' } } })
    expect((await patch('key_nobody', { name: 'x' })).status).toBe(404)
    expect(await keys()).toMatchObject([{ name: 'test key', revokedAt: null }])
  })
})

it('a key shows the agent that used it last, and the audit log can be filtered by agent', async () => {
  const { body } = await post({ name: 'of an agent' })
  const agentOfKey = async () => (await keys()).find(({ id }) => id === body.key.id)?.agent
  expect(await agentOfKey()).toBeNull()
  const use = async (userAgent: string) =>
    await service.call('GET', '/v1/units', { key: body.secret, headers: { 'user-agent': userAgent } })
  await use('claude-code/2.1 (external, cli)')
  const told = { name: 'claude-code', title: 'Claude Code', version: '2.1' }
  expect(await agentOfKey()).toEqual({ ...told, userAgent: 'claude-code/2.1 (external, cli)' })
  service.clock.advance(2 * MINUTE)
  await use('curl/8.5.0')
  expect(await agentOfKey()).toBeNull()
  const log = await service.call<AuditList>('GET', '/v1/audit?agent=claude-code', { key: team.key })
  expect(log.body.events).toMatchObject([
    { agentName: 'claude-code', agentVersion: '2.1', userAgent: 'claude-code/2.1 (external, cli)' },
  ])
})

it('a connected client is listed as an agent, and not as a key', async () => {
  await insertConnectedClient(service, team)
  const id = (await agents()).agents.find(({ kind }) => kind === 'oauth')?.id ?? ''
  expect((await agents()).agents.map(({ kind, prefix }) => [kind, prefix === null])).toEqual([
    ['oauth', true],
    ['key', false],
  ])
  expect(await keys()).toMatchObject([{ kind: 'key' }])
  expect((await patch(id, { name: 'x' })).status).toBe(404)
  expect((await revoke(id)).status).toBe(404)
  const path = `/v1/agents/${id}`
  const changed = await service.call('PATCH', path, { ...named({ cookie }), body: { name: 'renamed' } })
  expect(changed).toMatchObject({ status: 200, body: { agent: { name: 'renamed', kind: 'oauth' } } })
  expect(await service.call('DELETE', path, named({ cookie }))).toMatchObject({
    status: 200,
    body: { ok: true },
  })
})
