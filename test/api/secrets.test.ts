// Secrets of a team over HTTP: what is refused and how, and that a value is in no answer, log line or audit row.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AuditList } from '../../src/contract/audit.ts'
import type { Secret, SecretList } from '../../src/contract/secret.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { makeKey, makeSession, makeTeam, type TestTeam } from '../support/make.ts'
import { type Answer, type Service, startService } from '../support/service.ts'

type Refused = { error: { code: string; message: string; details: { path: string; message: string }[] } }
type Created = { units: Unit[] } & Refused

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService()
})
beforeEach(async () => {
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

const VALUE = 'sk-proj-c4nary'
const hosts = ['api.example.com']
const put = async (name: string, body: unknown = { value: VALUE, hosts }, key = team.key) =>
  await service.call<{ secret: Secret } & Refused>('PUT', `/v1/secrets/${name}`, { key, body })
const list = async (key = team.key) => (await service.call<SecretList>('GET', '/v1/secrets', { key })).body
const create = async (env: object, key = team.key, rest: object = {}) =>
  await service.call<Created>('POST', '/v1/units', {
    key,
    body: { spec: { name: 'web', image: 'node:22', env, ...rest } },
  })
const firstFault = ({ status, body }: Answer<Refused>) => ({ status, ...body.error.details[0] })
const many = (count: number) => Array.from({ length: count }, (_, at) => `h${at}.example.com`)

describe('PUT /v1/secrets/{name}', () => {
  it('makes a secret, and answers all of it but its value', async () => {
    const { status, body } = await put('OPENAI_API_KEY')
    expect(status).toBe(200)
    expect(body.secret).toEqual({
      name: 'OPENAI_API_KEY',
      hosts,
      placeholder: expect.stringMatching(/^berth_secret_[0-9a-f]{40}$/),
      units: 0,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    })
    expect((await list()).secrets).toEqual([body.secret])
  })

  it.each([
    ['api.example.com.', 'api.example.com'],
    ['API.Example.COM', 'api.example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['例え.テスト', 'xn--r8jz45g.xn--zckzah'],
    ['مثال.إختبار', 'xn--mgbh0fb.xn--kgbechtv'],
  ])('stores the host %j in the form in which names are compared', async (host, stored) => {
    const { body } = await put('KEY', { value: 'x', hosts: [host, stored] })
    expect(body.secret.hosts).toEqual([stored])
  })

  it.each([
    ['a wildcard', { value: VALUE, hosts: ['*.example.com'] }, 'hosts.0', 'exact name'],
    ['a port', { value: VALUE, hosts: ['api.example.com:443'] }, 'hosts.0', 'without a port'],
    ['an IPv4 address', { value: VALUE, hosts: ['203.0.113.9'] }, 'hosts.0', 'no address'],
    ['an IPv6 address', { value: VALUE, hosts: ['[2001:db8::1]'] }, 'hosts.0', 'no address'],
    ['a preset', { value: VALUE, hosts: ['preset:openai'] }, 'hosts.0', 'name of a public host'],
    ['a single label', { value: VALUE, hosts: ['localhost'] }, 'hosts.0', 'name of a public host'],
    ['a unit', { value: VALUE, hosts: ['db.shop.internal'] }, 'hosts.0', 'host of this service or of a unit'],
    [
      'a URL of a unit',
      { value: VALUE, hosts: ['web.berth.localhost'] },
      'hosts.0',
      'host of this service or of a unit',
    ],
    ['no host', { value: VALUE, hosts: [] }, 'hosts', 'at least 1'],
    ['17 hosts', { value: VALUE, hosts: many(17) }, 'hosts', 'at most 16'],
    ['3,000 hosts', { value: VALUE, hosts: many(3000) }, 'hosts', 'at most 16'],
    ['10,000 hosts', { value: VALUE, hosts: many(10_000) }, '', 'more than 4000 values'],
    ['hosts left out', { value: VALUE }, 'hosts', ''],
    ['no value', { hosts }, 'value', ''],
    ['an empty value', { value: '', hosts }, 'value', 'one line'],
    ['a line break at the end', { value: `${VALUE}\n`, hosts }, 'value', 'one line'],
    ['another header', { value: `${VALUE}\r\nHost: evil.example`, hosts }, 'value', 'one line'],
    ['a NUL', { value: `a\0b`, hosts }, 'value', ''],
    ['other letters', { value: 'schlüssel', hosts }, 'value', 'ASCII'],
    ['a value of 8193 characters', { value: 'x'.repeat(8193), hosts }, 'value', 'at most 8192'],
    ['a short placeholder', { value: VALUE, hosts, placeholder: 'short' }, 'placeholder', '16 to 256'],
    [
      'a placeholder that has the value',
      { value: VALUE, hosts, placeholder: `${VALUE}-${VALUE}` },
      'placeholder',
      'must not contain the value',
    ],
    ['an unknown method', { value: VALUE, hosts, methods: ['TRACE'] }, 'methods.0', 'must be one of GET'],
    ['no method', { value: VALUE, hosts, methods: [] }, 'methods', 'at least 1'],
    ['a path above', { value: VALUE, hosts, paths: ['/v1/../v2'] }, 'paths.0', 'must be a path'],
    ['33 paths', { value: VALUE, hosts, paths: many(33).map((at) => `/${at}`) }, 'paths', 'at most 32'],
    ['an unknown field', { value: VALUE, hosts, other: 1 }, 'other', 'unknown field'],
  ])('refuses %s, and does not repeat the value', async (_what, body, path, message) => {
    const refused = await put('KEY', body)
    expect(firstFault(refused)).toEqual({ status: 400, path, message: expect.stringContaining(message) })
    expect(JSON.stringify(refused.body)).not.toContain(VALUE)
    expect((await list()).secrets).toEqual([])
  })

  it.each(['1KEY', 'a%20b', 'K%2FE', 'schl%C3%BCssel', 'x'.repeat(129), '__proto__%00'])(
    'refuses the name %s with a sentence',
    async (name) => {
      const refused = await put(name)
      expect(refused.status).toBe(400)
      expect(refused.body.error.message).toContain('name')
    },
  )

  it('takes any name that a variable can have', async () => {
    for (const name of ['_', 'constructor', '__proto__', 'a.b-c', 'x'.repeat(128)]) {
      expect((await put(name)).body.secret.name).toBe(name)
    }
  })

  it('is for owners, admins and keys to which they gave every secret', async () => {
    const { secret: key } = await makeKey(service, { ...team, policy: { allowedSecrets: ['KEY'] } })
    expect((await put('KEY', undefined, key)).status).toBe(403)
    expect((await service.call('DELETE', '/v1/secrets/KEY', { key })).status).toBe(403)
    const cookie = await makeSession(service, team)
    const headers = { origin: service.baseUrl }
    const body = { value: VALUE, hosts }
    expect((await service.call('PUT', '/v1/secrets/KEY', { cookie, headers, body })).status).toBe(200)
    expect((await list(key)).secrets).toHaveLength(1)
  })
})

describe('an environment', () => {
  it.each([
    ['hosts and no value', { secret: 'KEY', hosts }, 'value', 'only a given value can be brokered'],
    ['a line break', { secret: 'KEY', value: `${VALUE}\n`, hosts }, 'value', 'one line'],
    ['a wildcard', { secret: 'KEY', value: VALUE, hosts: ['*.example.com'] }, 'hosts.0', 'exact name'],
    ['a unit', { secret: 'KEY', value: VALUE, hosts: ['x.berth.localhost'] }, 'hosts.0', 'of this service'],
    ['no hosts', { secret: 'KEY', value: VALUE, placeholder: 'x'.repeat(20) }, 'placeholder', 'with "hosts"'],
    ['3,000 hosts', { secret: 'KEY', value: VALUE, hosts: many(3000) }, 'hosts', 'at most 16'],
    ['an unknown secret', { teamSecret: 'NONE' }, 'teamSecret', 'the team has no secret "NONE"'],
  ])('with %s is refused at the field', async (_what, entry, path, message) => {
    const refused = await create({ API_KEY: entry })
    expect(firstFault(refused)).toEqual({
      status: 400,
      path: `spec.env.API_KEY.${path}`,
      message: expect.stringContaining(message),
    })
    expect(JSON.stringify(refused.body)).not.toContain(VALUE)
  })

  it('has at most 32 secrets with hosts or of the team, and one meaning for each', async () => {
    const entries = Array.from({ length: 33 }, (_, at) => [
      `V${at}`,
      { secret: `S${at}`, value: VALUE, hosts },
    ])
    const many = await create(Object.fromEntries(entries))
    expect(many.body.error.message).toContain('at most 32 secrets')
    const two = await create({
      A: { secret: 'S', value: VALUE, hosts },
      B: { secret: 'S', value: VALUE },
    })
    expect(two.body.error.message).toContain('two different values, or hosts')
    expect((await create(Object.fromEntries(entries.slice(1)))).status).toBe(201)
  })
})

it('a policy says which secrets a key binds, and one that becomes narrower takes them from its units', async () => {
  await put('KEY')
  await put('OTHER')
  const narrow = await makeKey(service, { ...team, policy: { allowedSecrets: ['KEY'] } })
  const refused = await create({ A: { teamSecret: 'OTHER' } }, narrow.secret)
  expect(refused).toMatchObject({
    status: 402,
    body: {
      error: {
        code: 'policy_violation',
        details: { field: 'allowedSecrets', asked: ['OTHER'], allowed: ['KEY'] },
      },
    },
  })
  const [unit] = (await create({ A: { teamSecret: 'KEY' } }, narrow.secret)).body.units
  if (!unit) throw new Error('no unit')
  expect(service.engine.egressOf(unit.id)?.secrets.map(({ value }) => value)).toEqual([VALUE])

  const cookie = await makeSession(service, team)
  const headers = { origin: service.baseUrl }
  const body = { policy: { allowedSecrets: [] } }
  const dry = await service.call('POST', `/v1/agents/${narrow.id}/dry-run`, { cookie, headers, body })
  expect(dry.body).toEqual({ stops: [], narrows: [{ id: unit.id, name: 'web' }] })
  const changed = await service.call('PATCH', `/v1/keys/${narrow.id}`, { cookie, headers, body })
  expect(changed.body).toMatchObject({ narrowed: [{ id: unit.id, name: 'web' }] })
  expect(service.engine.egressOf(unit.id)?.secrets ?? []).toEqual([])
  const after = await service.call<Unit>('GET', `/v1/units/${unit.id}`, { key: team.key })
  expect(after.body.env).toEqual({})
})

it('only an owner or admin gives a key every secret', async () => {
  const policy = { allowedSecrets: ['*'] }
  const cookie = await makeSession(service, team)
  const headers = { origin: service.baseUrl }
  const body = { name: 'all', policy }
  expect((await service.call('POST', '/v1/keys', { cookie, headers, body })).status).toBe(201)
  await service.app.db.updateTable('memberships').set({ role: 'member' }).execute()
  expect((await service.call('POST', '/v1/keys', { cookie, headers, body })).status).toBe(403)
  const named = { name: 'one', policy: { allowedSecrets: ['KEY'] } }
  expect((await service.call('POST', '/v1/keys', { cookie, headers, body: named })).status).toBe(201)
})

it('the audit log has names and hosts, and no value is in it, in a log line or in a table', async () => {
  await put('KEY')
  await create({ A: { teamSecret: 'KEY' }, B: { secret: 'OWN', value: `${VALUE}-own`, hosts } })
  await put('KEY', { value: `${VALUE}-2`, hosts })
  const [unit] = (await service.call<{ units: Unit[] }>('GET', '/v1/units', { key: team.key })).body.units
  const gone = await service.call('DELETE', '/v1/secrets/KEY', { key: team.key })
  expect(gone.body).toEqual({ ok: true, unbound: [{ id: unit?.id, name: 'web' }] })
  const { body } = await service.call<AuditList>('GET', '/v1/audit', { key: team.key })
  const rows = body.events.filter(({ action }) => action.startsWith('secret.'))
  expect(rows.map(({ action, target, input }) => ({ action, target, input }))).toEqual([
    { action: 'secret.delete', target: 'KEY', input: { unbound: [unit?.id] } },
    { action: 'secret.put', target: 'KEY', input: { hosts } },
    { action: 'secret.put', target: 'KEY', input: { hosts } },
  ])
  expect(JSON.stringify(body)).not.toContain(VALUE)
  expect(service.logged.join('\n')).not.toContain(VALUE)
  const stored = await Promise.all([
    service.app.db.selectFrom('team_secrets').selectAll().execute(),
    service.app.db.selectFrom('secrets').selectAll().execute(),
    service.app.db.selectFrom('units').selectAll().execute(),
  ])
  const text = JSON.stringify(stored, (_key, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  )
  expect(text).not.toContain(VALUE)
})
