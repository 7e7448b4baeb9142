// Z1: input generated from openapi.json. No call may end in a fault, every answer is as the document describes it,
// and what the document forbids is always refused with 400. The deep tier draws eight times as many inputs.

import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { insertMember } from '../../src/store/members.ts'
import {
  components,
  exampleBody,
  fill,
  jsonBodyOf as bodySchema,
  type Named,
  operations,
  paramsOf,
  pathFor,
  takesArchive,
} from '../support/document.ts'
import { answerCode } from '../support/code.ts'
import { arbitraryOf, conforms, fieldOf, invalidOf } from '../support/json-schema.ts'
import {
  makeHosted,
  makeInvite,
  makeKey,
  makeMember,
  makeProcess,
  makeSession,
  makeSharedTeam,
  makeTeam,
  makeUnit,
  type TestTeam,
} from '../support/make.ts'
import { isDeep } from '../support/part-of.ts'
import { type Service, startService } from '../support/service.ts'
import { type FakeStripe, startStripe } from '../support/stripe.ts'

/** Inputs for each operation. They are drawn anew each time, and a failure prints how to repeat it. */
const [ALLOWED, FORBIDDEN, UNKNOWN] = isDeep ? [120, 300, 30] : [8, 16, 2]
const TIMEOUT_MS = isDeep ? 600_000 : 60_000

let service: Service
let stripe: FakeStripe
let team: TestTeam
let cookie: string
let unit: Unit
/** The values of path parameters, by the first part of the path. */
let known: Record<string, Record<string, string>>

beforeAll(async () => {
  stripe = await startStripe()
  service = await startService({ supportEmail: 'support@operator.test', payments: stripe.settings })
  answerCode(service)
})
afterAll(async () => {
  await service.close()
  await stripe.close()
})

async function makeKnown(): Promise<void> {
  team = await makeTeam(service)
  cookie = await makeSession(service, team)
  const { id: keyId } = await makeKey(service, team)
  const kept = { value: 'sk-1', hosts: ['api.example.com'] }
  const cmd = ['sh', '-c', 'echo a line; sleep infinity']
  unit = await makeUnit(service, team, { ports: [3000], cmd, env: { OWN: { secret: 'KEY', ...kept } } })
  const { id: sharedId } = await makeSharedTeam(service)
  const { db } = service.app
  const at = service.app.clock.now()
  await insertMember(db, { teamId: sharedId, userId: team.userId, role: 'owner', at })
  const { userId } = await makeMember(service, sharedId, 'member')
  const invited = await makeInvite(service, { teamId: sharedId, cookie, email: 'guest@example.test' })
  const elsewhere = await makeSharedTeam(service)
  const own = { teamId: elsewhere.id, cookie: elsewhere.owner.cookie, email: team.email }
  const { token } = await makeInvite(service, own)
  await service.call('PUT', '/v1/secrets/KEY', { key: team.key, body: kept })
  const hostedId = await makeHosted(service, { teamId: team.teamId, cookie }, 'env_test')
  known = {
    units: {
      id: unit.id,
      name: 'KEY',
      contextId: 'ctx_1',
      pid: '1',
      processId: await makeProcess(service, team, unit.id),
    },
    stacks: { id: unit.stackId },
    keys: { id: keyId },
    agents: { id: keyId },
    'hosted-agents': { id: hostedId },
    teams: { id: sharedId, userId, inviteId: invited.id },
    invites: { token },
    recipes: { name: 'redis' },
    secrets: { name: 'KEY' },
  }
}

type Sent = { params: Record<string, string>; query: Record<string, unknown>; body?: unknown }

async function send({ method, path }: Named, { params, query, body }: Sent): Promise<Response> {
  const fields = Object.entries(query).map<[string, string]>(([key, value]) => [key, text(value)])
  const search = new URLSearchParams(fields).toString()
  const url = `${fill(path, params)}${search === '' ? '' : `?${search}`}`
  const json = body !== undefined && !(body instanceof Uint8Array)
  // Calls that only people may make come from the server’s own pages.
  const isOfPeople =
    /^\/v1\/(?:me|teams|invites)/.test(path) ||
    (method !== 'GET' && /^\/v1\/(?:keys|agents|hosted-agents)/.test(path))
  return await service.fetch(method, url, {
    ...(isOfPeople ? { cookie } : { key: team.key }),
    body: json ? JSON.stringify(body) : body,
    headers: { origin: service.baseUrl, ...(json ? { 'content-type': 'application/json' } : {}) },
  })
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Checks the whole answer against the document, and returns its status. */
async function checked(named: Named, response: Response): Promise<number> {
  const { status, headers } = response
  const described = named.operation.responses[String(status)]
  expect(described, `${named.name} answered ${status}, which the document does not have`).toBeDefined()
  expect([500, 501, 504]).not.toContain(status)
  expect(headers.get('x-request-id')).toMatch(/^req_/)
  const type = headers.get('content-type')?.split(';')[0] ?? ''
  const schema = described?.content[type]?.schema
  expect(schema, `${named.name} answered ${status} as ${type}`).toBeDefined()
  if (type === 'text/event-stream' || type === 'application/x-tar') {
    await response.body?.cancel()
    return status
  }
  const body: unknown = await response.json()
  const wrong = schema ? conforms(schema, components)(body) : null
  expect(wrong, `${named.name} ${status}: ${JSON.stringify(body).slice(0, 1000)}`).toBeNull()
  return status
}

/** Sometimes only the required fields, because a call with several fields is easily refused. */
function queryOf({ operation }: Named): fc.Arbitrary<Record<string, unknown>> {
  const parameters = (operation.parameters ?? []).filter((parameter) => parameter.in === 'query')
  const fields = parameters.map(({ name, schema }) => [name, fieldOf(name, schema, components)])
  const required = parameters.filter((parameter) => parameter.required).map(({ name }) => name)
  const drawn = Object.fromEntries(fields) as Record<string, fc.Arbitrary<unknown>>
  const least = Object.fromEntries(Object.entries(drawn).filter(([name]) => required.includes(name)))
  return fc.oneof(
    { weight: 4, arbitrary: fc.record(drawn, { requiredKeys: required }) },
    { weight: 1, arbitrary: fc.record(least) },
  )
}

/** The required fields of the query. */
function leastQuery(named: Named): Record<string, unknown> {
  const { parameters = [] } = named.operation
  const required = parameters.filter((each) => each.in === 'query' && each.required)
  return Object.fromEntries(required.map(({ name }) => [name, pathFor(named)]))
}

/** Mostly ids that exist, and sometimes arbitrary ones. */
const paramsFor = ({ path }: Named) =>
  fc.record(
    Object.fromEntries(
      paramsOf(path).map((name) => [
        name,
        fc.oneof(
          { weight: 5, arbitrary: fc.constant(knownFor(path)[name] ?? '') },
          fc.constantFrom('unit_00000000000000000000000000000000', 'a/b', '\0', '%', ' ', 'ä'),
          fc
            .string({ unit: 'binary', minLength: 1, maxLength: 80 })
            .filter((id) => id.isWellFormed() && !/^\.+$/.test(id)),
        ),
      ]),
    ),
  )

function knownFor(path: string): Record<string, string> {
  const params = known[path.split('/')[2] ?? ''] ?? {}
  const missing = paramsOf(path).filter((name) => params[name] === undefined)
  expect(missing, `say what these are in ${path}`).toEqual([])
  return params
}

describe('input that the document allows gets a documented answer and causes no fault', () => {
  // Some of these calls delete it.
  beforeEach(makeKnown)

  test.each(operations.map((named) => [named.name, named] as const))(
    '%s',
    async (_name, named) => {
      const schema = bodySchema(named)
      const octets =
        takesArchive(named) || named.operation.requestBody?.content['application/octet-stream'] !== undefined
      const body = schema
        ? arbitraryOf(schema, components)
        : octets
          ? fc.uint8Array({ maxLength: 5000 })
          : fc.constant(undefined)
      const statuses = new Set<number>()
      await fc.assert(
        fc.asyncProperty(paramsFor(named), queryOf(named), body, async (params, query, sent) => {
          statuses.add(await checked(named, await send(named, { params, query, body: bounded(named, sent) })))
        }),
        // The document’s own example comes first, because all generated input may be refused for one field or
        // another.
        { numRuns: ALLOWED, examples: [[knownFor(named.path), leastQuery(named), exampleBody(named)]] },
      )
      expect([...statuses]).toContain(wanted(named))
    },
    TIMEOUT_MS,
  )
})

/**
 * The status of a successful call. No file has the name that is read, only the provider can sign as the provider, and
 * nothing here asks for a WebSocket.
 */
function wanted({ name, operation }: Named): number {
  if (name === 'POST /v1/webhooks/stripe' || operation.responses['101']) return 400
  if (operation.responses['201']) return 201
  const needsFile = [
    'GET /v1/units/{id}/files',
    'GET /v1/units/{id}/files/content',
    'GET /v1/units/{id}/files/facts',
    'POST /v1/units/{id}/files/move',
    'DELETE /v1/units/{id}/files',
    'GET /v1/units/{id}/archive',
  ]
  return needsFile.includes(name) ? 404 : 200
}

/** Commands of the in-memory engine wait as long as requested, and this test has no hour. */
function bounded({ path }: Named, body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body
  if (path.endsWith('/exec')) return { ...body, timeoutMs: 50 }
  return 'spec' in body || 'recipe' in body ? { ...body, wait: false } : body
}

describe('a body that the document forbids is always refused with 400', () => {
  beforeAll(makeKnown)

  test.each(operations.filter(bodySchema).map((named) => [named.name, named] as const))(
    '%s',
    async (_name, named) => {
      const schema = bodySchema(named) ?? {}
      await fc.assert(
        fc.asyncProperty(invalidOf(schema, components), async (body) => {
          expect(
            await checked(named, await send(named, { params: knownFor(named.path), query: {}, body })),
          ).toBe(400)
        }),
        { numRuns: FORBIDDEN },
      )
    },
    TIMEOUT_MS,
  )
})

describe('a query field that the document does not have is always refused with 400', () => {
  beforeAll(makeKnown)

  test.each(operations.map((named) => [named.name, named] as const))(
    '%s',
    async (_name, named) => {
      await fc.assert(
        fc.asyncProperty(queryOf(named), fc.string({ minLength: 1 }), async (query, value) => {
          const sent = { params: knownFor(named.path), query: { ...query, [`x-${value}`]: value } }
          expect(await checked(named, await send(named, sent))).toBe(400)
        }),
        { numRuns: UNKNOWN },
      )
    },
    TIMEOUT_MS,
  )
})
