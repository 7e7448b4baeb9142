// Spec 2.12 and F33: exactly one row for every authenticated call, with any outcome.

import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AuditList } from '../../src/contract/audit.ts'
import type { AuditTable } from '../../src/store/audit.ts'
import { makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type CallOptions, type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let unitId: string

beforeAll(async () => {
  service = await startService({ rates: { requests: 1000, creations: 10, execs: 1000 } })
  team = await makeTeam(service)
  unitId = (await makeUnit(service, team)).id
})
afterAll(async () => await service.close())

let count = 0

/** Makes a call, and returns its status with the rows it left. */
async function traced(method: string, path: string, options: CallOptions = {}) {
  const requestId = `traced-${count++}`
  const headers = { 'x-request-id': requestId, ...options.headers }
  const response = await service.fetch(method, path, { key: team.key, ...options, headers })
  await response.text()
  return { status: response.status, rows: await rowsOf(requestId) }
}

async function rowsOf(requestId: string): Promise<Omit<AuditTable, 'cost_delta_nanocents'>[]> {
  return await service.app.db.selectFrom('audit').selectAll().where('request_id', '=', requestId).execute()
}

const json = { 'content-type': 'application/json' }

describe('exactly one audit row is written for', () => {
  const calls: [title: string, status: number, method: string, path: string, options?: CallOptions][] = [
    ['a list', 200, 'GET', '/v1/units'],
    ['a read', 200, 'GET', '/v1/units/{id}'],
    ['an exec', 200, 'POST', '/v1/units/{id}/exec', { body: { cmd: ['true'] } }],
    ['a create', 201, 'POST', '/v1/units', { body: { spec: { name: 'audited', image: 'node:22' } } }],
    ['a file written', 200, 'PUT', '/v1/units/{id}/files?path=/a', { body: 'x' }],
    ['a body that is not JSON', 400, 'POST', '/v1/units/{id}/exec', { body: '{', headers: json }],
    ['a body that is not valid', 400, 'POST', '/v1/units/{id}/exec', { body: { cmd: 1 } }],
    ['a query that is not valid', 400, 'GET', '/v1/units?limit=0'],
    ['an unknown unit', 404, 'GET', '/v1/units/nobody'],
    ['an id that no unit can have', 404, 'GET', '/v1/units/%00'],
    ['a file that does not exist', 404, 'GET', '/v1/units/{id}/files?path=/none'],
    [
      'a body that is too large',
      413,
      'POST',
      '/v1/units/{id}/exec',
      { body: 'x'.repeat(3e6), headers: json },
    ],
    ['a body of another media type', 415, 'POST', '/v1/units/{id}/exec', { body: 'x' }],
    [
      'a body of no media type',
      415,
      'POST',
      '/v1/units/{id}/exec',
      { body: 'x', headers: { 'content-type': 'x y' } },
    ],
    ['a start of a running unit', 200, 'POST', '/v1/units/{id}/start'],
  ]
  test.each(calls)('%s', async (_title, expected, method, path, options) => {
    const { status, rows } = await traced(method, path.replace('{id}', unitId), options)
    const target = /units\/([\w-]+)/.exec(path.replace('{id}', unitId))?.[1] ?? null
    expect(rows).toMatchObject([{ status, team_id: team.teamId, credential_id: team.keyId }])
    if (status >= 400) expect(rows).toMatchObject([{ target }])
    if (path.endsWith('/start')) return
    expect(status).toBe(expected)
  })

  test('a call over the rate limit', async () => {
    const own = await makeTeam(service, { maxConcurrentUnits: 100 })
    const body = { spec: { name: 'web', image: 'node:22' }, wait: false }
    const create = () => traced('POST', '/v1/units', { key: own.key, body })
    for (let asked = 0; asked < 10; asked++) await create()
    expect(await create()).toMatchObject({
      status: 429,
      rows: [{ status: 429, error_code: 'quota_exceeded' }],
    })
  })

  test('a call that the policy refuses', async () => {
    const own = await makeTeam(service, { allowedSizes: ['nano'] })
    const body = { spec: { name: 'big', image: 'node:22', size: 'large' } }
    const { status, rows } = await traced('POST', '/v1/units', { key: own.key, body })
    expect(status).toBe(402)
    expect(rows).toMatchObject([{ status: 402, error_code: 'policy_violation', action: 'unit.create' }])
  })

  test('a call that fails in the infrastructure', async () => {
    service.engine.fail('exec', 'internal')
    const { status, rows } = await traced('POST', `/v1/units/${unitId}/exec`, { body: { cmd: ['true'] } })
    expect(status).toBe(502)
    expect(rows).toMatchObject([{ status: 502, error_code: 'provider_error' }])
  })

  test('a call of a session from another site', async () => {
    const cookie = await makeSession(service, team)
    const requestId = `traced-${count++}`
    const headers = { 'x-request-id': requestId, origin: 'https://evil.test' }
    const answer = await service.call('DELETE', `/v1/units/${unitId}`, { cookie, headers })
    expect(answer.status).toBe(403)
    expect(await rowsOf(requestId)).toMatchObject([
      { status: 403, credential_kind: 'session', via: 'dashboard', user_id: team.userId, target: unitId },
    ])
  })
})

describe('no audit row is written for', () => {
  test.each([
    ['a call without credentials', 401, 'GET', '/v1/units', ''],
    ['an unknown path', 404, 'GET', '/v1/nothing', 'key'],
    ['openapi.json', 200, 'GET', '/v1/openapi.json', 'key'],
  ])('%s', async (_title, expected, method, path, as) => {
    const { status, rows } = await traced(method, path, as === 'key' ? {} : { key: 'nobody' })
    expect(status).toBe(expected)
    expect(rows).toEqual([])
  })
})

test('a call that changes something has its audit row before it starts', async () => {
  const release = service.engine.hang('exec')
  const requestId = `traced-${count++}`
  const asking = service.call('POST', `/v1/units/${unitId}/exec`, {
    key: team.key,
    body: { cmd: ['echo', 'late'] },
    headers: { 'x-request-id': requestId },
  })
  await expect.poll(() => rowsOf(requestId)).toMatchObject([{ status: null, target: unitId }])
  release()
  expect((await asking).status).toBe(200)
  const rows = await rowsOf(requestId)
  expect(rows).toMatchObject([{ status: 200, duration_ms: expect.any(Number) }])
})

test('a command does not run before its audit row is written, nor where that fails', async () => {
  const commands = () => service.engine.calls.filter(({ operation }) => operation === 'exec').length
  const requestId = `traced-${count++}`
  const ask = () =>
    service.call('POST', `/v1/units/${unitId}/exec`, {
      key: team.key,
      body: { cmd: ['echo', 'hello'] },
      headers: { 'x-request-id': requestId },
    })
  const { db } = service.app
  const before = commands()
  const lock = await db.startTransaction().execute()
  await sql`lock table audit in share mode`.execute(lock)
  const asking = ask()
  const isWaiting = async () => {
    const { rows } =
      await sql`select 1 from pg_locks where relation = 'audit'::regclass and not granted`.execute(db)
    return rows.length
  }
  await expect.poll(isWaiting).toBe(1)
  expect(commands()).toBe(before)
  await lock.rollback().execute()
  expect((await asking).status).toBe(200)
  expect(commands()).toBe(before + 1)

  await sql`alter table audit add constraint no_commands check (action <> 'unit.exec') not valid`.execute(db)
  try {
    expect((await ask()).status).toBe(500)
  } finally {
    await sql`alter table audit drop constraint no_commands`.execute(db)
  }
  expect(commands()).toBe(before + 1)
  expect(await rowsOf(requestId)).toMatchObject([{ status: 200 }])
})

test('two calls with the same request id have two audit rows', async () => {
  const headers = { 'x-request-id': 'the-same' }
  await Promise.all([1, 2].map(() => service.call('GET', '/v1/units', { key: team.key, headers })))
  expect(await rowsOf('the-same')).toHaveLength(2)
})

test('two hundred concurrent calls have an audit row each', async () => {
  const ids = Array.from({ length: 200 }, (_, index) => `many-${index}`)
  await Promise.all(
    ids.map((id) => service.call('GET', '/v1/units', { key: team.key, headers: { 'x-request-id': id } })),
  )
  const { rows } = await service.app.db
    .selectFrom('audit')
    .select('request_id')
    .where('request_id', 'like', 'many-%')
    .execute()
    .then((found) => ({ rows: found.map(({ request_id }) => request_id) }))
  expect(rows).toHaveLength(200)
  expect(new Set(rows)).toEqual(new Set(ids))
})

describe('an audit row contains', () => {
  test('the caller, the action, the client and the cost', async () => {
    const { rows } = await traced('POST', `/v1/units/${unitId}/exec`, {
      body: { cmd: ['true'] },
      headers: { 'user-agent': 'tester/1.2 (höflich)' },
    })
    expect(rows).toMatchObject([
      {
        action: 'unit.exec',
        target: unitId,
        credential_kind: 'key',
        credential_name: 'test key',
        user_id: team.userId,
        via: 'api',
        agent_name: null,
        agent_version: null,
        user_agent: expect.stringMatching(/^tester\/1\.2 \(h[\x20-\x7e]*flich\)$/),
        cost_delta_nanocents: expect.any(BigInt),
      },
    ])
  })

  test('the id of the unit that a create made', async () => {
    const body = { spec: { name: 'made-here', image: 'node:22' } }
    const requestId = `traced-${count++}`
    const answer = await service.call<{ units: { id: string }[] }>('POST', '/v1/units', {
      key: team.key,
      body,
      headers: { 'x-request-id': requestId },
    })
    expect(await rowsOf(requestId)).toMatchObject([{ target: answer.body.units[0]?.id }])
  })

  test('sizes of contents, names of variables, and commands without passwords', async () => {
    const exec = await traced('POST', `/v1/units/${unitId}/exec`, {
      body: {
        cmd: ['psql', '--password=hunter2', 'postgres://a:hunter2@b/c'],
        cwd: '/tmp',
        env: { PGPASSWORD: 'hunter2' },
        stdin: 'häß',
      },
    })
    expect(exec.rows[0]?.input).toEqual({
      cmd: ['psql', '--password=***', 'postgres://a:***@b/c'],
      cwd: '/tmp',
      env: ['PGPASSWORD'],
      timeoutMs: 120_000,
      stdinBytes: 5,
    })
    const write = await traced('PUT', `/v1/units/${unitId}/files?path=/secret`, { body: 'hunter2' })
    expect(write.rows[0]?.input).toEqual({ path: '/secret', bytes: 7 })
    const spec = { name: 'recorded', image: 'node:22', env: { B: 'hunter2', A: { secret: 'S' } } }
    const create = await traced('POST', '/v1/units', {
      body: { spec: { ...spec, files: { '/f': 'hunter2' } } },
    })
    expect(create.rows[0]?.input).toMatchObject({
      spec: { name: 'recorded', env: ['A', 'B'], files: [{ path: '/f', bytes: 7 }] },
    })
    expect(stringify([exec, write, create])).not.toContain('hunter2')
  })
})

test('a command that is cut within a character is recorded', async () => {
  for (const offset of [0, 1]) {
    const cmd = ['echo', 'x'.repeat(offset) + '😀'.repeat(2000)]
    const { status, rows } = await traced('POST', `/v1/units/${unitId}/exec`, { body: { cmd } })
    expect(status).toBe(200)
    expect(rows).toHaveLength(1)
  }
})

test('S22: secrets are stored in encrypted columns only, and are neither logged nor returned', async () => {
  const canary = (name: string) => `canary-${name}-7f3a9c`
  const spec = {
    name: 'canaries',
    image: 'node:22',
    env: { PLAIN: 'shown', TOKEN: { secret: 'TOKEN', value: canary('env') } },
    files: { '/etc/app.conf': canary('boot-file') },
    cmd: ['server', `--password=${canary('cmd')}`],
  }
  const own = await makeTeam(service)
  const made = await service.call<{ units: { id: string }[] }>('POST', '/v1/units', {
    key: own.key,
    body: { spec },
  })
  const id = made.body.units[0]?.id ?? ''
  const exec = { cmd: ['psql', `--password=${canary('exec')}`], stdin: canary('stdin') }
  const answers = [
    made,
    await service.call('POST', `/v1/units/${id}/exec`, { key: own.key, body: exec }),
    await service.call('PUT', `/v1/units/${id}/files?path=/f`, { key: own.key, body: canary('file') }),
    await service.call('GET', `/v1/units/${id}`, { key: own.key }),
    await service.call('GET', '/v1/units', { key: own.key }),
    await service.call('POST', '/v1/units', {
      key: own.key,
      body: { spec: { ...spec, size: canary('bad') } },
    }),
  ]
  service.engine.fail('exec', 'internal')
  answers.push(await service.call('POST', `/v1/units/${id}/exec`, { key: own.key, body: exec }))
  const shown = JSON.stringify(answers.map(({ body }) => body))
  for (const name of ['env', 'boot-file', 'exec', 'stdin', 'file']) expect(shown).not.toContain(canary(name))

  const { db } = service.app
  const stored = [
    await db.selectFrom('audit').selectAll().execute(),
    await db.selectFrom('stacks').selectAll().execute(),
    await db.selectFrom('meters').selectAll().execute(),
  ]
  const text = stringify(stored) + service.logged.join('')
  expect(text).toContain('unit.exec')
  expect(text).not.toContain('7f3a9c')
  const sealed = [
    await db.selectFrom('secrets').selectAll().execute(),
    await db.selectFrom('boot_files').selectAll().execute(),
  ]
  expect(sealed.flat().length).toBeGreaterThan(0)
  for (const row of sealed.flat()) {
    for (const value of Object.values<unknown>(row)) {
      const bytes = Buffer.isBuffer(value) ? value : Buffer.from(String(value))
      expect(bytes.includes('7f3a9c')).toBe(false)
    }
  }
})

function stringify(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => (typeof item === 'bigint' ? String(item) : item))
}

describe('the filters of GET /v1/audit', () => {
  test('work alone, together and with pagination', async () => {
    const own = await makeTeam(service)
    const as = async (method: string, path: string) => await service.call(method, path, { key: own.key })
    const unit = await makeUnit(service, own)
    await as('GET', `/v1/units/${unit.id}`)
    await as('GET', '/v1/units?limit=0')
    await as('GET', `/v1/units/${unit.id}`)
    const list = async (query: string) =>
      (await service.call<AuditList>('GET', `/v1/audit?${query}`, { key: own.key })).body
    const actions = async (query: string) => (await list(query)).events.map(({ action }) => action)
    const { events } = await list('')
    expect(await actions(`target=${unit.id}`)).toEqual(['unit.get', 'unit.get', 'unit.create'])
    expect(await actions('action=unit.create')).toEqual(['unit.create'])
    expect(await actions('action=unit')).toEqual([])
    expect(await actions('failed=true')).toEqual(['unit.list'])
    expect(await actions(`failed=true&target=${unit.id}`)).toEqual([])
    expect(await actions('failed=false&action=unit.list')).toEqual(['unit.list'])
    expect(await actions('changes=true')).toEqual(['unit.create'])
    expect(await actions(`changes=true&target=${unit.id}`)).toEqual(['unit.create'])
    expect(await actions('changes=true&failed=true')).toEqual([])
    await as('POST', `/v1/units/${unit.id}/stop`)
    const change = await list('changes=true&limit=1')
    expect(change.events.map(({ action }) => action)).toEqual(['unit.stop'])
    expect(await actions(`changes=true&limit=1&cursor=${change.next}`)).toEqual(['unit.create'])
    const first = await list('action=unit.get&limit=1')
    expect(await actions(`action=unit.get&limit=1&cursor=${first.next}`)).toEqual(['unit.get'])
    const [newest] = events
    const oldest = events.at(-1)
    const at = (text = '', ms = 0) => encodeURIComponent(new Date(Date.parse(text) + ms).toISOString())
    expect(await actions(`action=unit.create&until=${at(oldest?.at, -60_000)}`)).toEqual([])
    expect(await actions(`action=unit.create&since=${at(oldest?.at, -60_000)}`)).toEqual(['unit.create'])
    expect(await actions(`since=${at(newest?.at, 60_000)}`)).toEqual([])
    expect(await actions(`action=unit.get&until=${at(newest?.at, 60_000)}&limit=1`)).toEqual(['unit.get'])
    for (const query of ['since=yesterday', 'until=2026-13-01T00:00:00Z', 'failed=1'])
      expect([query, (await as('GET', `/v1/audit?${query}`)).status]).toEqual([query, 400])
  })
})
