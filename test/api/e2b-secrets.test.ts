// Secrets of a team by clients of E2B, whose hosts stand in the metadata.

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { SecretList } from '../../src/contract/secret.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

const VALUE = 'sk-c4nary'
const ask = async (path: string, body: unknown) => {
  const answer = await service.fetch('POST', `/e2b${path}`, { headers: { 'x-api-key': team.key }, body })
  const text = await answer.text()
  expect(text).not.toContain(VALUE)
  return { status: answer.status, body: JSON.parse(text) as object }
}
const requestsOf = async (asked: string) => {
  const { body } = await service.call<SecretList>('GET', '/v1/secrets', { key: team.key })
  const { hosts, methods, paths } = body.secrets.find(({ name }) => name === asked) ?? {}
  return { hosts, methods, paths }
}

it('a secret is made with its hosts, once, and shown without its value', async () => {
  const metadata = { hosts: 'api.example.com, api.example.org' }
  const made = await ask('/secrets', { name: 'made', value: VALUE, metadata })
  const shown = { name: 'made', metadata: { hosts: 'api.example.com,api.example.org' } }
  expect(made).toMatchObject({ status: 201, body: shown })
  expect((await ask('/secrets', { name: 'made', value: VALUE, metadata })).status).toBe(409)
  expect((await requestsOf('made')).hosts).toEqual(['api.example.com', 'api.example.org'])
})

it('a secret whose hosts are not said goes nowhere, until they are', async () => {
  const made = await ask('/secrets', { name: 'openai-api-key', value: VALUE })
  expect(made).toMatchObject({ status: 201, body: { name: 'openai-api-key', metadata: {} } })
  expect((await requestsOf('openai-api-key')).hosts).toEqual(['hosts-not-set.invalid'])
  expect((await ask('/secrets/openai-api-key', { value: VALUE })).body).toMatchObject({ metadata: {} })
  const said = { value: VALUE, metadata: { hosts: 'api.example.com' } }
  expect((await ask('/secrets/openai-api-key', said)).body).toMatchObject({ metadata: said.metadata })
  expect((await requestsOf('openai-api-key')).hosts).toEqual(['api.example.com'])
})

it('another value leaves the requests for which a secret is as they were', async () => {
  const requests = { hosts: ['api.example.com'], methods: ['GET'], paths: ['/v1/*'] }
  const body = { value: VALUE, ...requests }
  await service.call('PUT', '/v1/secrets/changed', { key: team.key, body })
  expect((await ask('/secrets/changed', { value: `${VALUE}-2` })).status).toBe(200)
  expect(await requestsOf('changed')).toEqual(requests)
  const moved = { value: VALUE, metadata: { hosts: 'api.example.org' } }
  expect((await ask('/secrets/changed', moved)).status).toBe(200)
  expect(await requestsOf('changed')).toEqual({ ...requests, hosts: ['api.example.org'] })
})

it.each([
  ['/secrets', { name: 'other', value: VALUE, metadata: { hosts: '' } }, 400],
  ['/secrets', { name: 'other', value: VALUE, metadata: { hosts: '10.0.0.1' } }, 400],
  ['/secrets', { name: 'other', value: VALUE, metadata: { hosts: 'api.example.com', owner: 'me' } }, 400],
  ['/secrets', { name: 'no name', value: VALUE, metadata: { hosts: 'api.example.com' } }, 400],
  ['/secrets/none', { value: VALUE }, 404],
])('POST %s with %j is refused with %i', async (path, body, status) => {
  expect((await ask(path, body)).status).toBe(status)
})
