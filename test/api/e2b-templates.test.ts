// Builds of templates by clients of E2B, with what such a client would not send.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeTeam, type TestTeam } from '../support/make.ts'
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

const control = async <T>(method: string, path: string, body?: unknown, key = team.key) =>
  await service.call<T>(method, `/e2b${path}`, {
    headers: { 'x-api-key': key },
    ...(body === undefined ? {} : { body }),
  })

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

it.each([
  [{ name: '' }],
  [{ name: 'no name!' }],
  [{ name: 'a', cpuCount: 64 }],
  [{ name: 'a', memoryMB: 1_000_000 }],
  [{ name: 'a', tags: ['one', 'two'] }],
])('a request for a build with %j is refused', async (wrong) => {
  expect((await control('POST', '/v3/templates', wrong)).status).toBe(400)
})

it('steps that are not known, and too many builds at once, are refused', async () => {
  const build = await request('steps')
  for (const wrong of [
    { steps: [{ type: 'COPY', args: ['a', 'b'] }] },
    { steps: [{ type: 'RUN', args: [7] }] },
    { fromImageRegistry: { type: 'aws' } },
  ])
    expect((await control('POST', pathOf(build), { fromImage: 'base', ...wrong })).status).toBe(400)
  for (let made = 1; made < 4; made += 1) await request(`steps-${made}`)
  expect((await control('POST', '/v3/templates', { name: 'one-more' })).status).toBe(429)
  expect((await control('POST', '/v3/templates', { name: 'theirs' }, other.key)).status).toBe(202)
  expect((await control('GET', '/templates/steps/files/abc')).status).toBe(400)
})
