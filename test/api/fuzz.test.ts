// Z1: input generated from openapi.json. Nothing may answer with a fault, every answer is what the
// document says, and what the document forbids is always refused with 400.

import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import {
  arbitraryOf,
  type Components,
  conforms,
  fieldOf,
  invalidOf,
  type JsonSchema,
} from '../support/json-schema.ts'
import { makeKey, makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

type Parameter = { name: string; in: 'path' | 'query'; required: boolean; schema: JsonSchema }
type Content = Record<string, { schema: JsonSchema }>
type Operation = {
  parameters?: Parameter[]
  requestBody?: { content: Content }
  responses: Record<string, { headers?: Record<string, unknown>; content: Content }>
}

type Named = { name: string; method: string; path: string; operation: Operation }

const document = JSON.parse(await readFile(new URL('../../openapi.json', import.meta.url), 'utf8')) as {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Components }
}
const components = document.components.schemas

const operations: Named[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${path}`,
    method: method.toUpperCase(),
    path,
    operation,
  })),
)

const RUNS = { numRuns: 60 }
const TIMEOUT_MS = 60_000

let service: Service
let team: TestTeam
let cookie: string
let unit: Unit
let keyId: string

beforeAll(async () => {
  service = await startService({ supportEmail: 'support@operator.test' })
  team = await makeTeam(service)
  cookie = await makeSession(service, team)
})
beforeEach(async () => {
  keyId = (await makeKey(service, team)).id
  unit = await makeUnit(service, team, { cmd: ['sh', '-c', 'echo a line; sleep infinity'] })
})
afterAll(async () => await service.close())

type Sent = { id: string; query: Record<string, unknown>; body?: unknown }

async function send({ method, path }: Named, { id, query, body }: Sent): Promise<Response> {
  const fields = Object.entries(query).map<[string, string]>(([key, value]) => [key, text(value)])
  const search = new URLSearchParams(fields).toString()
  const url = `${path.replace('{id}', encodeURIComponent(id))}${search === '' ? '' : `?${search}`}`
  const json = body !== undefined && !(body instanceof Uint8Array)
  // What only people may do they do from the service's own pages.
  const isOfPeople = path === '/v1/me' || (method !== 'GET' && /^\/v1\/(?:keys|agents)/.test(path))
  return await service.fetch(method, url, {
    ...(isOfPeople ? { cookie } : { key: team.key }),
    body: json ? JSON.stringify(body) : body,
    headers: { origin: service.baseUrl, ...(json ? { 'content-type': 'application/json' } : {}) },
  })
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** The status, once the whole answer is what the document says about it. */
async function checked(named: Named, response: Response): Promise<number> {
  const { status, headers } = response
  const described = named.operation.responses[String(status)]
  expect(described, `${named.name} answered ${status}, which the document does not have`).toBeDefined()
  expect([500, 501, 504]).not.toContain(status)
  expect(headers.get('x-request-id')).toMatch(/^req_/)
  const type = headers.get('content-type')?.split(';')[0] ?? ''
  const schema = described?.content[type]?.schema
  expect(schema, `${named.name} answered ${status} as ${type}`).toBeDefined()
  if (type === 'text/event-stream') {
    await response.body?.cancel()
    return status
  }
  const body: unknown = await response.json()
  const wrong = schema ? conforms(schema, components)(body) : null
  expect(wrong, `${named.name} ${status}: ${JSON.stringify(body).slice(0, 1000)}`).toBeNull()
  return status
}

function queryOf({ operation }: Named): fc.Arbitrary<Record<string, unknown>> {
  const parameters = (operation.parameters ?? []).filter((parameter) => parameter.in === 'query')
  const fields = parameters.map(({ name, schema }) => [name, fieldOf(name, schema, components)])
  const required = parameters.filter((parameter) => parameter.required).map(({ name }) => name)
  return fc.record(Object.fromEntries(fields) as Record<string, fc.Arbitrary<unknown>>, {
    requiredKeys: required,
  })
}

const bodySchema = ({ operation }: Named) => operation.requestBody?.content['application/json']?.schema

/** The id of something that is there. */
function known(path: string): string {
  if (path.startsWith('/v1/stacks/')) return unit.stackId
  return path.startsWith('/v1/units/') ? unit.id : keyId
}

const idOf = ({ path }: Named) =>
  fc.oneof(
    { weight: 5, arbitrary: fc.constant(known(path)) },
    fc.constantFrom('unit_00000000000000000000000000000000', 'a/b', '\0', '%', '..', ' ', 'ä'),
    fc
      .string({ unit: 'binary', minLength: 1, maxLength: 80 })
      .filter((id) => id.isWellFormed() && !/^\.+$/.test(id)),
  )

describe('input the document allows never ends in a fault, and the answer is as described', () => {
  test.each(operations.map((named) => [named.name, named] as const))(
    '%s',
    async (_name, named) => {
      const schema = bodySchema(named)
      const octets = named.operation.requestBody?.content['application/octet-stream'] !== undefined
      const body = schema
        ? arbitraryOf(schema, components)
        : octets
          ? fc.uint8Array({ maxLength: 5000 })
          : fc.constant(undefined)
      const statuses = new Set<number>()
      await fc.assert(
        fc.asyncProperty(idOf(named), queryOf(named), body, async (id, query, sent) => {
          statuses.add(await checked(named, await send(named, { id, query, body: bounded(sent) })))
        }),
        RUNS,
      )
      // Else nothing but refusals would have been tried.
      expect([...statuses]).toContain(wanted(named))
    },
    TIMEOUT_MS,
  )
})

/** What a call that goes well answers; no file has the name that is read. */
function wanted({ name, operation }: Named): number {
  if (operation.responses['201']) return 201
  return name === 'GET /v1/units/{id}/files' ? 404 : 200
}

/** Commands of the engine in memory wait as long as asked; here nobody has an hour. */
function bounded(body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body
  if ('cmd' in body) return { ...body, timeoutMs: 50 }
  return 'spec' in body ? { ...body, wait: false } : body
}

describe('a body the document forbids is always 400', () => {
  test.each(operations.filter(bodySchema).map((named) => [named.name, named] as const))(
    '%s',
    async (_name, named) => {
      const schema = bodySchema(named) ?? {}
      await fc.assert(
        fc.asyncProperty(invalidOf(schema, components), async (body) => {
          expect(await checked(named, await send(named, { id: known(named.path), query: {}, body }))).toBe(
            400,
          )
        }),
        { numRuns: 150 },
      )
    },
    TIMEOUT_MS,
  )
})

describe('a query the document does not have is always 400', () => {
  test.each(operations.map((named) => [named.name, named] as const))('%s', async (_name, named) => {
    await fc.assert(
      fc.asyncProperty(queryOf(named), fc.string({ minLength: 1 }), async (query, value) => {
        const sent = { id: unit.id, query: { ...query, [`x-${value}`]: value } }
        expect(await checked(named, await send(named, sent))).toBe(400)
      }),
      { numRuns: 10 },
    )
  })
})
