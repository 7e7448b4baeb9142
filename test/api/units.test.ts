import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

const call = <T>(method: string, path: string, body?: unknown) =>
  service.call<T>(method, path, { key: team.key, ...(body === undefined ? {} : { body }) })

test('a unit can be created, used, stopped, started and destroyed', async () => {
  const spec = { name: 'web', image: 'node:22', ports: [3000], env: { A: '1' } }
  const made = await call<{ units: Unit[]; outputs: object; recipe: null; costLine: string }>(
    'POST',
    '/v1/units',
    { spec, stack: 'shop' },
  )
  expect(made.status).toBe(201)
  expect(made.body).toMatchObject({ outputs: {}, recipe: null, costLine: expect.any(String) })
  const [unit] = made.body.units
  expect(unit).toMatchObject({
    name: 'web',
    state: 'running',
    teamId: team.teamId,
    size: 'small',
    env: { A: '1' },
    ports: [3000],
    stoppedReason: null,
    costCentsSoFar: expect.any(Number),
    sleepsAt: expect.any(String),
  })
  const path = `/v1/units/${unit?.id}`

  expect((await call('POST', `${path}/exec`, { cmd: ['echo', 'hello'] })).body).toEqual({
    exitCode: 0,
    stdout: 'hello\n',
    stderr: '',
    timedOut: false,
    truncated: false,
  })

  const given = { cmd: ['sh', '-c', 'pwd; printenv A; printenv B'], cwd: '/tmp', env: { A: '2', B: '3' } }
  expect((await call('POST', `${path}/exec`, given)).body).toMatchObject({ stdout: '/tmp\n2\n3\n' })

  const content = Buffer.from('print("häß")\n')
  const sha256 = createHash('sha256').update(content).digest('hex')
  const file = { path: '/app/main.py', contentBase64: content.toString('base64') }
  expect((await call('POST', `${path}/files`, file)).body).toEqual({
    path: '/app/main.py',
    bytes: content.length,
    sha256,
    verified: true,
  })
  expect((await call('GET', `${path}/files?path=/app/main.py`)).body).toEqual(file)
  expect((await call('PUT', `${path}/files?path=/app/raw`, content)).body).toMatchObject({ sha256 })

  expect((await call('POST', `${path}/stop`)).body).toMatchObject({ state: 'stopped', stoppedReason: 'user' })
  expect((await call('POST', `${path}/start`, {})).body).toMatchObject({ state: 'running' })
  expect((await call('GET', path)).body).toMatchObject({ state: 'running' })
  expect((await call('DELETE', path)).body).toMatchObject({ state: 'destroyed' })
  expect((await call('GET', path)).body).toMatchObject({ state: 'destroyed' })
})

test('the environment of a unit is shown in the order of its declaration', async () => {
  const env = { ZULU: 'z', ALPHA: 'a', MIKE_LONG: { secret: 'M' }, B: 'b' }
  const { id } = await makeUnit(service, team, { env })
  const { body } = await call('GET', `/v1/units/${id}`)
  expect(Object.keys((body as Unit).env)).toEqual(Object.keys(env))
})

describe('GET /v1/units (spec 4.2)', () => {
  test('lists the units of one stack, by name or id, newest first', async () => {
    const own = await makeTeam(service)
    const first = await makeUnit(service, own, { name: 'first' })
    const second = await makeUnit(service, own, { name: 'second' })
    const list = async (query = '') =>
      (await service.call<{ units: Unit[]; next: null }>('GET', `/v1/units${query}`, { key: own.key })).body
    expect((await list()).units.map(({ id }) => id)).toEqual([second.id, first.id])
    expect((await list('?stack=first')).units.map(({ id }) => id)).toEqual([first.id])
    expect((await list(`?stack=${second.stackId}`)).units.map(({ id }) => id)).toEqual([second.id])
  })

  test('returns 404 for an unknown stack, and 403 for one of another team', async () => {
    const [own, other] = [await makeTeam(service), await makeTeam(service)]
    const { stackId, name } = await makeUnit(service, other)
    const list = async (stack: string) =>
      (await service.call('GET', `/v1/units?stack=${stack}`, { key: own.key })).status
    expect([await list(stackId), await list(name), await list('stack_nowhere')]).toEqual([403, 404, 404])
  })

  test('hides destroyed units unless all=true', async () => {
    const own = await makeTeam(service)
    const unit = await makeUnit(service, own)
    await service.call('DELETE', `/v1/units/${unit.id}`, { key: own.key })
    const list = async (query: string) =>
      (await service.call<{ units: Unit[] }>('GET', `/v1/units${query}`, { key: own.key })).body.units
    expect(await list('')).toEqual([])
    expect(await list('?all=true')).toMatchObject([{ id: unit.id, state: 'destroyed' }])
  })

  test('continues after the end of a page', async () => {
    const own = await makeTeam(service)
    for (const name of ['a', 'b', 'c']) await makeUnit(service, own, { name })
    const page = async (query: string) =>
      (
        await service.call<{ units: Unit[]; next: string | null }>('GET', `/v1/units?limit=2${query}`, {
          key: own.key,
        })
      ).body
    const first = await page('')
    expect(first.units.map(({ name }) => name)).toEqual(['c', 'b'])
    const second = await page(`&cursor=${first.next}`)
    expect(second).toMatchObject({ units: [{ name: 'a' }], next: null })
  })

  test.each([
    'limit=0',
    'limit=-1',
    'limit=501',
    'limit=1e9',
    'limit=x',
    'cursor=tampered',
    'all=1',
    'colour=red',
  ])('refuses the query ?%s', async (query) => {
    const { status, body } = await call('GET', `/v1/units?${query}`)
    expect(status).toBe(400)
    expect(body).toMatchObject({ error: { code: 'validation', details: [{ path: query.split('=')[0] }] } })
  })

  test('refuses a repeated query field', async () => {
    expect((await call('GET', '/v1/units?stack=a&stack=b')).status).toBe(400)
  })
})

describe('POST /v1/units/{id}/exec (spec 4.2)', () => {
  test('passes stdin to the command, and returns the exit code', async () => {
    const { id } = await makeUnit(service, team)
    const run = (body: object) => call('POST', `/v1/units/${id}/exec`, body)
    expect((await run({ cmd: ['cat'], stdin: 'in\n' })).body).toMatchObject({ exitCode: 0, stdout: 'in\n' })
    expect((await run({ cmd: ['false'] })).body).toMatchObject({ exitCode: 1 })
    expect((await run({ cmd: ['sh', '-c', 'exit 7'] })).body).toMatchObject({ exitCode: 7 })
  })

  test('returns 127 for a command that does not exist', async () => {
    const { id } = await makeUnit(service, team)
    const { status, body } = await call('POST', `/v1/units/${id}/exec`, { cmd: ['nonesuch'] })
    expect(status).toBe(200)
    expect(body).toMatchObject({ exitCode: 127, stderr: expect.stringContaining('nonesuch') })
  })

  test('kills a command at timeoutMs, and returns its output', async () => {
    const { id } = await makeUnit(service, team)
    const cmd = ['sh', '-c', 'echo begun; sleep infinity']
    const { body } = await call('POST', `/v1/units/${id}/exec`, { cmd, timeoutMs: 50 })
    expect(body).toMatchObject({ timedOut: true, stdout: 'begun\n' })
  })

  test('cuts output over 1 MB, and says so', async () => {
    const { id } = await makeUnit(service, team)
    const { body } = await call<{ stdout: string; truncated: boolean }>('POST', `/v1/units/${id}/exec`, {
      cmd: ['head', '-c', String(3 * 1024 * 1024)],
    })
    expect(body.truncated).toBe(true)
    expect(body.stdout.length).toBe(1024 * 1024)
  })

  test('ends the command when the caller disconnects', async () => {
    const { id } = await makeUnit(service, team)
    const gone = new AbortController()
    const asking = service.fetch('POST', `/v1/units/${id}/exec`, {
      key: team.key,
      body: { cmd: ['sleep', 'infinity'] },
      signal: gone.signal,
    })
    const began = () => service.engine.calls.some((entry) => entry.operation === 'exec' && entry.id === id)
    await expect.poll(began).toBe(true)
    gone.abort()
    await expect(asking).rejects.toThrow()
    const statusOfRow = async () =>
      (
        await service.app.db
          .selectFrom('audit')
          .select('status')
          .where('target', '=', id)
          .where('action', '=', 'unit.exec')
          .execute()
      ).map(({ status }) => status)
    await expect.poll(statusOfRow).toEqual([499])
  })

  test('is refused in a stopped unit with its last exit', async () => {
    const { id } = await makeUnit(service, team)
    await call('POST', `/v1/units/${id}/stop`)
    const { status, body } = await call('POST', `/v1/units/${id}/exec`, { cmd: ['true'] })
    expect(status).toBe(409)
    expect(body).toMatchObject({ error: { code: 'invalid_state', details: { lastExit: null } } })
  })
})

describe('the files of a unit (spec 4.2)', () => {
  const MB = 1024 * 1024

  test.each([0, 1, MB - 1, MB])(
    'of %i bytes are written and read back whole, by POST and PUT',
    async (size) => {
      const { id } = await makeUnit(service, team)
      const content = Buffer.alloc(size, 'x')
      const path = `/v1/units/${id}/files`
      const contentBase64 = content.toString('base64').replace(/(.{76})/g, '$1\r\n')
      expect((await call('POST', path, { path: '/f', contentBase64 })).body).toMatchObject({ bytes: size })
      expect((await call('PUT', `${path}?path=/g`, content)).body).toMatchObject({
        bytes: size,
        verified: true,
      })
      for (const name of ['/f', '/g']) {
        const { body } = await call('GET', `${path}?path=${name}`)
        expect(body).toEqual({ path: name, contentBase64: content.toString('base64') })
      }
    },
  )

  test.each([MB + 1, 3 * MB])('of %i bytes are refused with 400, by POST and PUT', async (size) => {
    const { id } = await makeUnit(service, team)
    const content = Buffer.alloc(size, 'x')
    const path = `/v1/units/${id}/files`
    const refused = (at: string) => ({ error: { code: 'validation', details: [{ path: at }] } })
    const posted = await call('POST', path, { path: '/f', contentBase64: content.toString('base64') })
    expect(posted).toMatchObject({ status: 400, body: refused('contentBase64') })
    const put = await call('PUT', `${path}?path=/f`, content)
    expect(put).toMatchObject({ status: 400, body: refused('') })
    expect(JSON.stringify(put.body)).not.toContain('contentBase64')
  })

  test.each(['YWJ', 'YWJj=', 'YQ', 'not base64!', '=', 'YWJj YWJj'])(
    'are refused with base64 such as %j',
    async (contentBase64) => {
      const { id } = await makeUnit(service, team)
      const { status, body } = await call('POST', `/v1/units/${id}/files`, { path: '/f', contentBase64 })
      expect(status).toBe(400)
      expect(body).toMatchObject({ error: { code: 'validation', details: [{ path: 'contentBase64' }] } })
    },
  )

  test.each(['relative', '', '/', '/a/../b', '/a//b', '/a/.', '/nul%00', `/${'a'.repeat(5000)}`])(
    'are refused with the path %.40j',
    async (path) => {
      const { id } = await makeUnit(service, team)
      const { status, body } = await call('GET', `/v1/units/${id}/files?path=${path}`)
      expect(status).toBe(400)
      expect(body).toMatchObject({ error: { code: 'validation', details: [{ path: 'path' }] } })
    },
  )

  test('keep their mode over a write, unless the write has one', async () => {
    const { id } = await makeUnit(service, team)
    const path = `/v1/units/${id}/files`
    const modeAfter = async (written: Promise<{ status: number }>) => {
      expect((await written).status).toBe(200)
      const answer = await service.fetch('GET', `${path}?path=/f`, { key: team.key })
      return answer.headers.get('berth-file-mode')
    }
    expect(await modeAfter(call('PUT', `${path}?path=/f`, 'new'))).toBe('0644')
    expect(await modeAfter(call('PUT', `${path}?path=/f&mode=755`, 'a program'))).toBe('0755')
    expect(await modeAfter(call('PUT', `${path}?path=/f`, 'another'))).toBe('0755')
    const posted = { path: '/f', contentBase64: 'eA==' }
    expect(await modeAfter(call('POST', path, { ...posted, mode: '04710' }))).toBe('4710')
    expect(await modeAfter(call('POST', path, posted))).toBe('4710')
    const { body } = await call('GET', `/v1/units/${id}/directory?path=/`)
    expect(body).toMatchObject({
      entries: expect.arrayContaining([expect.objectContaining({ name: 'f', mode: '4710' })]),
    })
  })

  test.each(['', '8', '0o755', '-1', '77777', '007777', 'u+x', '7 '])(
    'are refused with the mode %j',
    async (mode) => {
      const { id } = await makeUnit(service, team)
      const refused = { status: 400, body: { error: { code: 'validation', details: [{ path: 'mode' }] } } }
      const asked = `/v1/units/${id}/files`
      expect(await call('PUT', `${asked}?path=/f&mode=${encodeURIComponent(mode)}`, 'x')).toMatchObject(
        refused,
      )
      expect(await call('POST', asked, { path: '/f', contentBase64: 'eA==', mode })).toMatchObject(refused)
    },
  )

  test('that are boot files are written with a warning', async () => {
    const { id } = await makeUnit(service, team, { files: { '/etc/app.conf': 'a' } })
    const answer = await call('PUT', `/v1/units/${id}/files?path=/etc/app.conf`, 'b')
    expect(answer.body).toMatchObject({ verified: true, warning: expect.any(String) })
  })

  test('that do not exist return 404', async () => {
    const { id } = await makeUnit(service, team)
    expect((await call('GET', `/v1/units/${id}/files?path=/none`)).status).toBe(404)
  })
})

describe('an unknown unit (spec 7)', () => {
  const ids = [
    'unit_00000000000000000000000000000000',
    'x',
    '%00',
    'a%2Fb',
    '..%2f..',
    '%20',
    '%ff',
    `${'a'.repeat(150)}`,
  ]
  const actions = [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/stop'],
    ['GET', '/logs'],
    ['GET', '/files?path=/a'],
  ] as const
  test.each(ids.flatMap((id) => actions.map(([method, rest]) => [method, `/v1/units/${id}${rest}`])))(
    'returns 404 for %s %s',
    async (method, path) => {
      const { status, body } = await call(method, path)
      expect(status).toBe(404)
      expect(body).toMatchObject({ error: { code: 'not_found', requestId: expect.any(String) } })
    },
  )
})
