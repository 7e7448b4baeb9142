// Recipes over HTTP (spec 2.4, 2.11, 4.4), on the in-memory engine. Each recipe runs for real in
// test/flows/recipes.deep.test.ts.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ExecResult } from '../../src/contract/exec.ts'
import type { Recipe, RecipeList } from '../../src/contract/recipe.ts'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Stack } from '../../src/contract/stack.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService()
  service.engine.onExec(({ argv: [program = ''] }) => {
    if (program === 'printenv') return null
    onHealthcheck(program)
    return { exitCode: 0 }
  })
})
beforeEach(async () => {
  onHealthcheck = () => {}
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

type Refused = { error: { code: string; message: string; details: unknown } }

const call = async <T>(method: string, path: string, body?: unknown) =>
  await service.call<T & Refused>(method, path, { key: team.key, body })
const create = async (recipe: string, more: object = {}) =>
  await call<RunResult>('POST', '/v1/units', { recipe, ...more })
const listUnits = async () => (await call<{ units: Unit[] }>('GET', '/v1/units')).body.units
const all =
  'postgres mariadb redis mongodb neo4j rabbitmq etcd node python static debian docker browser claude-code codex codex-executor codex-environment web-with-postgres'.split(
    ' ',
  )
const app = { files: { 'server.js': 'listen()' } }

/** The value of a variable for a command within the unit. */
const variable = async (unit: Unit | undefined, name: string) => {
  const { body } = await call<ExecResult>('POST', `/v1/units/${unit?.id}/exec`, { cmd: ['printenv', name] })
  return body.stdout.slice(0, -1)
}

/** Called for each healthcheck with the first word of its command; all of them pass. */
let onHealthcheck: (program: string) => void = () => {}

describe('GET /v1/recipes', () => {
  it('lists every recipe, with a page of its parameters, outputs and units', async () => {
    const { body } = await call<RecipeList>('GET', '/v1/recipes')
    expect(body.recipes.map(({ name }) => name)).toEqual(all)
    for (const { name, title, description, tags } of body.recipes) {
      const page = await call<Recipe>('GET', `/v1/recipes/${name}`)
      expect(page).toMatchObject({ status: 200, body: { name, title, description, tags } })
      expect(page.body.units.length).toBeGreaterThan(0)
    }
  })

  it('shows type, options, default and format of each parameter', async () => {
    const { body } = await call<Recipe>('GET', '/v1/recipes/postgres')
    expect(body.params).toContainEqual({
      name: 'database',
      type: 'string',
      options: null,
      defaultValue: '"app"',
      required: false,
      description: 'The database to create.',
      format:
        '1 to 63 lower-case letters, digits and _, beginning with a letter, and not template0, template1',
    })
    expect(body.params).toContainEqual(
      expect.objectContaining({ name: 'size', type: 'enum', options: ['nano', 'small', 'medium', 'large'] }),
    )
    expect(body).toMatchObject({
      frontDoor: null,
      outputs: [{ name: 'DATABASE_URL' }, { name: 'POSTGRES_PASSWORD' }],
    })
    expect(body.units).toMatchObject([
      { name: 'postgres', databasePorts: [{ port: 5432, protocol: 'postgres' }] },
    ])
  })

  it('returns 404 for an unknown recipe', async () => {
    for (const path of ['/v1/recipes/oracle', '/v1/recipes/__proto__', '/v1/recipes/..']) {
      expect((await call('GET', path)).status).toBe(404)
    }
    const refused = await create('oracle')
    expect(refused).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
  })
})

describe('a create from a recipe', () => {
  it('makes a database with its own password, and returns its connection URL', async () => {
    const { status, body } = await create('postgres', { params: { database: 'shop', size: null } })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      recipe: 'postgres',
      units: [{ name: 'postgres', state: 'running', size: 'small' }],
    })
    const [unit] = body.units
    expect(unit?.databasePorts).toEqual([{ port: 5432, protocol: 'postgres' }])
    expect(unit?.env['POSTGRES_PASSWORD']).toEqual({ secret: 'POSTGRES_PASSWORD' })
    const { DATABASE_URL = '', POSTGRES_PASSWORD = '' } = body.outputs
    expect(POSTGRES_PASSWORD).toMatch(/^[\w-]{32}$/)
    expect(DATABASE_URL).toBe(`postgres://app:${POSTGRES_PASSWORD}@postgres.postgres.internal:5432/shop`)
    expect(await variable(unit, 'POSTGRES_DB')).toBe('shop')
    expect(await variable(unit, 'POSTGRES_PASSWORD')).toBe(POSTGRES_PASSWORD)
    expect(JSON.stringify(await listUnits())).not.toContain(POSTGRES_PASSWORD)
  })

  it.each([
    ['postgres', { user: 'ann', database: 'shop' }, 5432, /^postgres:\/\/ann@[^@/]+:\d+\/shop$/],
    ['mariadb', { user: 'ann', database: 'shop' }, 3306, /^mysql:\/\/ann@[^@/]+:\d+\/shop$/],
    ['mongodb', { user: 'ann' }, 27017, /^mongodb:\/\/ann@[^@/]+:\d+\/\?authSource=admin$/],
    ['rabbitmq', { user: 'ann' }, 5672, /^amqps:\/\/ann@[^@/]+:\d+$/],
    ['redis', {}, 6379, /^rediss:\/\/default@[^@/]+:\d+\/0$/],
    ['etcd', {}, 2379, /^grpcs:\/\/[^@/]+:\d+$/],
  ])(
    'publishes its %s with user and database in the URL, and without the password',
    async (recipe, params, port, url) => {
      const { body } = await create(recipe, { params })
      const id = body.units[0]?.id ?? ''
      const exposed = await call<{ url: string }>('POST', `/v1/units/${id}/expose`, { port, mode: 'public' })
      expect(exposed.body.url).toMatch(url)
      expect((await call<Unit>('GET', `/v1/units/${id}`)).body.endpoints).toMatchObject([
        { url: exposed.body.url },
      ])
    },
  )

  it('names its units after the given name, in the given stack', async () => {
    const { body } = await create('web-with-postgres', { name: 'shop', stack: 'live', params: app })
    expect(body.units.map(({ name, internalHost }) => [name, internalHost])).toEqual([
      ['shop-db', 'shop-db.live.internal'],
      ['shop', 'shop.live.internal'],
    ])
    const [, web] = body.units
    const password = body.outputs['POSTGRES_PASSWORD'] ?? ''
    // In a fork, the bare name leads to the database of the fork.
    expect(await variable(web, 'DATABASE_URL')).toBe(`postgres://app:${password}@shop-db:5432/app`)
    expect(await variable(web, 'PORT')).toBe('8080')
    expect((await call<Stack>('GET', '/v1/stacks/live')).body.units).toHaveLength(2)
    const again = await create('redis', { name: 'shop', stack: 'live' })
    expect(again).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } })
  })

  it('finds a free name when none is given', async () => {
    const made = [await create('redis', { stack: 'live' }), await create('redis', { stack: 'live' })]
    const names = made.map(({ body }) => body.units[0]?.name ?? '')
    expect(names).toEqual(['redis', expect.stringMatching(/^redis-[0-9a-f]{6}$/)])
    expect(made[1]?.body.outputs['REDIS_URL']).toContain(`@${names[1]}.live.internal:6379`)
    expect(made[0]?.body.outputs['REDIS_PASSWORD']).not.toBe(made[1]?.body.outputs['REDIS_PASSWORD'])
  })

  it('publishes the exposed port, and is refused for a recipe without one', async () => {
    const { body } = await create('static', {
      expose: 'public',
      params: { files: { 'index.html': 'hello' } },
    })
    expect(body.units[0]).toMatchObject({
      endpoints: [{ port: 80, protocol: 'http', mode: 'public', url: body.outputs['URL'] }],
      files: [{ path: '/var/www/html/index.html', bytes: 5 }],
    })
    const refused = await create('postgres', { expose: 'public' })
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'validation' } } })
    expect(refused.body.error.message).toContain('publish its database')
    const bare = await create('debian', { expose: 'public' })
    expect([bare.status, bare.body.error.message]).toEqual([400, expect.stringContaining('/expose')])
    expect(bare.body.error.message).not.toContain('database')
  })

  it('applies the sleep window to every unit', async () => {
    const { body } = await create('web-with-postgres', { sleep: '7m', params: app })
    expect(body.units.map(({ sleep }) => sleep)).toEqual(['7m', '7m'])
  })

  it.each<[string, object, string, string]>([
    ['postgres', { databse: 'shop' }, 'params.databse', 'database, user, size, volumeGb'],
    ['postgres', { database: 'x; drop table' }, 'params.database', 'lower-case letters'],
    ['postgres', { user: 'pg_monitor' }, 'params.user', 'not pg_*, none, public'],
    ['postgres', { database: 'template1' }, 'params.database', 'not template0'],
    ['mariadb', { database: 'mysql' }, 'params.database', 'not information_schema'],
    ['rabbitmq', { user: 'guest' }, 'params.user', 'not guest'],
    ['node', { ...app, env: { PORT: '80' } }, 'params.env', 'PORT'],
    ['postgres', { size: 'huge' }, 'params.size', 'nano, small, medium, large'],
    ['postgres', { volumeGb: 0 }, 'params.volumeGb', '1 to 500'],
    ['postgres', { volumeGb: '2' }, 'params.volumeGb', '1 to 500'],
    ['node', {}, 'params.files', 'is required'],
    ['node', { files: {} }, 'params.files', 'at least one file'],
    ['node', { files: { '../etc/passwd': 'x' } }, 'params.files.../etc/passwd', 'below /app'],
    ['node', { files: { '/app/server.js': 'x' } }, 'params.files./app/server.js', 'without a leading slash'],
    ['node', { ...app, env: { 'A=B': 'x' } }, 'params.env.A=B', 'a name must begin'],
    ['codex', { key: 'sk-1' }, 'params.key', '{ "teamSecret": NAME }'],
    ['codex', { key: { value: 'two\nlines' } }, 'params.key.value', 'one line'],
    ['codex', { key: { value: 'k' }, version: '1 && id' }, 'params.version', 'such as latest'],
    ['codex', { key: { value: 'k' }, repository: 'ext::sh -c id' }, 'params.repository', 'https://'],
    [
      'codex',
      { key: { value: 'k' }, repositoryToken: { value: 't' } },
      'params.repositoryToken',
      'name that',
    ],
  ])('(%s) with %j is refused with the path of the parameter', async (recipe, params, path, words) => {
    const refused = await create(recipe, { params })
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'validation' } } })
    expect(refused.body.error.details).toEqual([{ path, message: expect.stringContaining(words) as string }])
    expect(await listUnits()).toEqual([])
  })

  it('gives the machine of a coding agent placeholders, each for the requests that it needs', async () => {
    const repository = 'https://git.example.com/some/thing.git'
    const params = { key: { value: 'sk-the-model' }, repository, repositoryToken: { value: 'ghp-the-token' } }
    const { status, body } = await create('claude-code', { params })
    expect(status).toBe(201)
    expect(body.units[0]?.env).toMatchObject({
      ANTHROPIC_API_KEY: {
        secret: 'ANTHROPIC_API_KEY',
        hosts: ['api.anthropic.com'],
        methods: ['GET', 'POST'],
        paths: expect.arrayContaining(['/v1/messages']) as string[],
      },
      REPOSITORY: repository,
      REPOSITORY_TOKEN: { hosts: ['git.example.com'], paths: ['/some/thing/*', '/some/thing.git/*'] },
    })
    for (const name of ['ANTHROPIC_API_KEY', 'REPOSITORY_TOKEN'])
      expect(await variable(body.units[0], name)).toMatch(/^berth_secret_/)
  })

  it('binds a secret of the team to the machine of a coding agent, or says that there is none', async () => {
    const refused = await create('codex')
    expect(refused).toMatchObject({ status: 400 })
    expect(JSON.stringify(refused.body)).toContain('the team has no secret \\"OPENAI_API_KEY\\"')
    const secret = { value: 'sk-of-the-team', hosts: ['api.openai.com'] }
    expect((await call('PUT', '/v1/secrets/OPENAI_API_KEY', secret)).status).toBeLessThan(300)
    const { body } = await create('codex')
    expect(body.units[0]?.env).toMatchObject({ OPENAI_API_KEY: { teamSecret: 'OPENAI_API_KEY' } })
  })

  it('passes arbitrary text of a parameter on unchanged', async () => {
    const odd = `$(touch /x) \`id\` '"; -- \\ %s {{unit:db}} \n é`
    const { status, body } = await create('node', { params: { ...app, env: { ODD: odd } } })
    expect(status).toBe(201)
    expect(await variable(body.units[0], 'ODD')).toBe(odd.replace('{{unit:db}}', 'db.node.internal'))
  })

  it('checks the policy for every unit, or makes none', async () => {
    const narrow = await makeTeam(service, { maxConcurrentUnits: 1 })
    const body = { recipe: 'web-with-postgres', params: app }
    const refused = await service.call<Refused>('POST', '/v1/units', { key: narrow.key, body })
    expect(refused).toMatchObject({ status: 402, body: { error: { code: 'quota_exceeded' } } })
    const small = await makeTeam(service, { allowedSizes: ['small'] })
    const tall = { ...body, params: { ...app, databaseSize: 'medium' } }
    const forbidden = await service.call<Refused>('POST', '/v1/units', { key: small.key, body: tall })
    expect(forbidden).toMatchObject({ status: 402, body: { error: { code: 'policy_violation' } } })
    for (const { key } of [narrow, small]) {
      expect((await service.call<{ units: Unit[] }>('GET', '/v1/units', { key })).body.units).toEqual([])
    }
  })

  it('makes one unit for a repeated Idempotency-Key, and returns the same answer', async () => {
    const sent = { key: team.key, body: { recipe: 'redis' }, headers: { 'idempotency-key': 'one' } }
    const first = await service.call<RunResult>('POST', '/v1/units', sent)
    const second = await service.call<RunResult>('POST', '/v1/units', sent)
    expect(second.body).toEqual(first.body)
    expect(await listUnits()).toHaveLength(1)
  })
})

describe('a recipe of several units', () => {
  it('starts the second unit once the first is ready', async () => {
    const { body } = await create('web-with-postgres', { params: app })
    const [db, web] = body.units
    const order = service.engine.calls.flatMap(({ operation, id }) => (operation === 'start' ? [id] : []))
    expect(order.indexOf(db?.id ?? '')).toBeLessThan(order.indexOf(web?.id ?? ''))
    expect(Date.parse(db?.startedAt ?? '')).toBeLessThanOrEqual(Date.parse(web?.startedAt ?? ''))
  })

  it('makes none when the first unit fails', async () => {
    service.engine.fail('pull', 'image_unavailable')
    await expectUndone()
  })

  it('destroys the running first unit when the second fails', async () => {
    onHealthcheck = (program) => {
      if (program === 'pg_isready') service.engine.fail('start', 'start_failed')
    }
    await expectUndone()
  })

  async function expectUndone(): Promise<void> {
    const before = service.engine.machines().length
    const refused = await create('web-with-postgres', { params: app })
    expect(refused).toMatchObject({ status: 502, body: { error: { code: 'provider_error' } } })
    await expect.poll(async () => (await listUnits()).map(({ state }) => state)).toEqual(['error'])
    expect(service.engine.machines()).toHaveLength(before)
  }
})
