// Builds of templates by clients of E2B, with what such a client would not send.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeKey, makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let other: TestTeam
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  other = await makeTeam(service)
})
afterAll(async () => await service.close())

type Requested = { templateID: string; buildID: string }

const control = async <T>(method: string, path: string, body?: unknown, key = team.key) => {
  const response = await service.fetch(method, `/e2b${path}`, {
    headers: { 'x-api-key': key },
    ...(body === undefined ? {} : { body }),
  })
  const text = await response.text()
  return { status: response.status, body: (text === '' ? null : JSON.parse(text)) as T }
}

const request = async (name: string): Promise<Requested> => {
  const answer = await control<Requested>('POST', '/v3/templates', { name })
  expect(answer.status).toBe(202)
  return answer.body
}

const pathOf = ({ templateID, buildID }: Requested) => `/v2/templates/${templateID}/builds/${buildID}`
const statusOf = async ({ templateID, buildID }: Requested, key = team.key) =>
  await control<{ status: string; logs: string[] }>(
    'GET',
    `/templates/${templateID}/builds/${buildID}/status`,
    undefined,
    key,
  )

it('a build begins once, is read by its own team, and becomes a template', async () => {
  const build = await request('tools:v1')
  expect((await statusOf(build)).body).toMatchObject({ status: 'waiting', logs: [] })
  expect((await statusOf(build, other.key)).status).toBe(404)
  service.engine.onExec(({ argv: [program] }) => (program === '/bin/sh' ? { exitCode: 0 } : null))
  const steps = [
    { type: 'USER', args: ['root'] },
    { type: 'RUN', args: ['true'] },
  ]
  const recipe = { fromImage: 'e2bdev/base', steps }
  expect((await control('POST', pathOf(build), recipe, other.key)).status).toBe(404)
  expect((await control('POST', pathOf(build), recipe)).status).toBe(202)
  expect((await control('POST', pathOf(build), recipe)).status).toBe(409)
  await expect.poll(async () => (await statusOf(build)).body.status).toBe('ready')
  expect((await statusOf(build)).body.logs).toContain('[2/2] RUN true')
  expect((await control('GET', '/templates/aliases/tools%3Av1')).status).toBe(200)
  expect((await control('GET', '/templates/aliases/tools%3Av1', undefined, other.key)).status).toBe(404)
  expect((await control('GET', '/templates/aliases/base')).status).toBe(200)
  expect((await control('POST', '/v2/sandboxes', { templateID: 'tools:v1' })).status).toBe(201)
})

it('a template without a build is refused with 404, and nothing is left of it', async () => {
  const nobody = await makeTeam(service)
  service.engine.fail('pull', 'image_not_found')
  const made = await control('POST', '/v2/sandboxes', { templateID: 'never-built' }, nobody.key)
  const message = expect.stringMatching(/^There is no template "never-built"/)
  expect(made).toMatchObject({ status: 404, body: { code: 404, message } })
  const { body } = await service.call<{ units: object[] }>('GET', '/v1/units', { key: nobody.key })
  expect(body.units).toEqual([])
})

it.each([
  [{ name: '' }],
  [{ name: 'no name!' }],
  [{ name: 'a', cpuCount: 64 }],
  [{ name: 'a', memoryMB: 1_000_000 }],
  [{ name: 'a', tags: ['no tag!'] }],
])('a request for a build with %j is refused', async (wrong) => {
  expect((await control('POST', '/v3/templates', wrong)).status).toBe(400)
})

it('steps that are not known, and files that were not sent, are refused', async () => {
  const build = await request('steps')
  for (const wrong of [
    { steps: [{ type: 'ADD', args: ['a', 'b'] }] },
    { steps: [{ type: 'COPY', args: ['a', 'b'] }] },
    { steps: [{ type: 'COPY', args: ['a', 'b'], filesHash: '../x' }] },
    { steps: [{ type: 'RUN', args: [7] }] },
    { fromImageRegistry: { type: 'aws' } },
  ])
    expect((await control('POST', pathOf(build), { fromImage: 'base', ...wrong })).status).toBe(400)
  expect((await control('GET', '/templates/steps/files/abc')).status).toBe(400)
})

it('a build whose start command fails does not wait until it is ready', async () => {
  service.engine.onExec(({ argv }) => {
    if (argv[0] !== '/bin/sh') return null
    return { exitCode: argv.at(-1) === 'is-ready' ? 1 : 0 }
  })
  const build = await request('started')
  const steps = [{ type: 'USER', args: ['root'] }]
  // The engine in memory has no such program.
  const recipe = { fromImage: 'base', steps, startCmd: 'serve', readyCmd: 'is-ready' }
  expect((await control('POST', pathOf(build), recipe)).status).toBe(202)
  await expect.poll(async () => (await statusOf(build)).body.status).toBe('error')
  const reason = { step: 'finalize', message: 'The start command failed with exit code 127.' }
  expect((await statusOf(build)).body).toMatchObject({ reason })
})

it('more builds than run at once wait for their turn', async () => {
  service.engine.onExec(({ argv: [program] }) => (program === '/bin/sh' ? { exitCode: 0 } : null))
  const builds: Requested[] = []
  for (let made = 0; made < 6; made += 1) builds.push(await request(`turn-${made}`))
  for (const build of builds)
    expect((await control('POST', pathOf(build), { fromImage: 'base' })).status).toBe(202)
  for (const build of builds)
    await expect.poll(async () => (await statusOf(build)).body.status, { timeout: 20_000 }).toBe('ready')
})

it('the files of a step are sent once, to a unit of the team, by a link for them alone', async () => {
  type Link = { present: boolean; url: string; headers: Record<string, string> }
  const hash = 'a'.repeat(64)
  const link = async (key = team.key) =>
    (await control<Link>('GET', `/templates/files/files/${hash}`, undefined, key)).body
  const [first, second] = await Promise.all([link(), link()])
  expect(first.headers).toEqual(second.headers)
  expect((await link(other.key)).headers).not.toEqual(first.headers)
  expect(first.url).toContain('/e2b/sandbox/files?')
  const { pathname, search } = new URL(first.url)
  const put = async (query: string) =>
    await fetch(`${service.baseUrl}${pathname}${query}`, {
      method: 'PUT',
      headers: first.headers,
      body: 'tar',
    })
  expect((await put(search.replace(hash, 'b'.repeat(64)))).status).toBe(401)
  expect((await put(search)).status).toBe(200)
  expect(first.present).toBe(false)
  expect((await link()).present).toBe(true)
})

it('tags lead to one template each, and one without a tag is gone', async () => {
  service.engine.onExec(({ argv: [program] }) => (program === '/bin/sh' ? { exitCode: 0 } : null))
  const build = async (tags: string[]) => {
    const { body } = await control<Requested>('POST', '/v3/templates', { name: 'tagged', tags })
    await control('POST', pathOf(body), { fromImage: 'base' })
    await expect.poll(async () => (await statusOf(body)).body.status).toBe('ready')
    return body.buildID
  }
  const tags = async () => {
    const { body } = await control<{ tag: string; buildID: string }[]>('GET', '/templates/tagged/tags')
    return Object.fromEntries(body.map(({ tag, buildID }) => [tag, buildID]))
  }
  const one = await build(['v1', 'stable'])
  const two = await build(['v2'])
  expect(await tags()).toEqual({ v1: one, stable: one, v2: two })
  const assigned = await control('POST', '/templates/tags', { target: 'tagged:v2', tags: ['stable', 'v1'] })
  expect(assigned).toMatchObject({ status: 201, body: { buildID: two, tags: ['stable', 'v1'] } })
  expect(await tags()).toEqual({ v1: two, stable: two, v2: two })
  expect((await control('DELETE', '/templates/tags', { name: 'tagged', tags: ['v1'] })).status).toBe(204)
  expect((await control('DELETE', '/templates/tags', { name: 'tagged', tags: ['v1'] })).status).toBe(404)
  expect(await tags()).toEqual({ stable: two, v2: two })
  expect((await control('GET', '/templates/aliases/tagged')).status).toBe(200)
  expect((await control('GET', '/templates/tagged/tags', undefined, other.key)).status).toBe(404)
  expect((await control('DELETE', '/templates/tagged')).status).toBe(204)
  expect((await control('GET', '/templates/aliases/tagged')).status).toBe(404)
})

it('asks about builds count against the rates and are in the audit log, as all calls are', async () => {
  const tight = await startService({ rates: { requests: 3, creations: 3, execs: 3 } })
  try {
    const poor = await makeTeam(tight)
    const statuses: number[] = []
    for (let at = 0; at < 4; at += 1) {
      const headers = { 'x-api-key': poor.key }
      const body = { name: 'counted' }
      statuses.push((await tight.fetch('POST', '/e2b/v3/templates', { headers, body })).status)
    }
    expect(statuses).toEqual([202, 202, 202, 429])
    const { secret } = await makeKey(tight, poor)
    const rows = await tight.call<{ events: { via: string }[] }>('GET', '/v1/audit?action=e2b.call', {
      key: secret,
    })
    expect(rows.body.events).toHaveLength(4)
  } finally {
    await tight.close()
  }
})
