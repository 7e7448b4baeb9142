// What must hold for every route: a new one that lacks something fails here, by name.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openApiDocument } from '../../src/api/openapi.ts'
import type { Route } from '../../src/api/route.ts'
import { e2bMethods } from '../../src/api/e2b/endpoint.ts'
import { portMethods } from '../../src/api/ports/endpoint.ts'
import { mcpMethods, mcpPaths } from '../../src/api/mcp/endpoint.ts'
import { changeActions } from '../../src/contract/audit-actions.ts'
import { routes } from '../../src/api/routes.ts'
import { createServer } from '../../src/api/server.ts'
import { SECOND } from '../../src/lib/clock.ts'
import { makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

/** Every route that can be called without a credential. A new line here is a decision. */
const openRoutes = [
  'GET /v1/auth/providers',
  'GET /v1/invites/{token}',
  'GET /v1/openapi.json',
  'POST /v1/webhooks/stripe',
]

/** Pages, which no credential opens either; those that change something call the operations. */
const openPages = [
  'GET /',
  'GET /account',
  'GET /hosts',
  'GET /invites/{token}',
  'GET /oauth/authorize',
  'GET /oauth/consent',
  'GET /pages.css',
  'GET /sign-in',
  'GET /sign-in/github',
  'GET /sign-in/google',
  'GET /sign-in/link',
  'POST /account/agents/{id}/revoke',
  'POST /invites/{token}',
  'POST /oauth/consent',
  'POST /sign-in',
  'POST /sign-in/github',
  'POST /sign-in/google',
  'POST /sign-in/link',
  'POST /sign-out',
]

/** The documentation: files, and pages made from them. */
const documentation = ['/docs', '/docs*', '/llms.txt', '/llms-full.txt'].flatMap((path) => [
  `GET ${path}`,
  `HEAD ${path}`,
])

/** What users install: a script, and packages. */
const downloads = ['/install', '/packages', '/packages*'].flatMap((path) => [`GET ${path}`, `HEAD ${path}`])

/** What clients call while they are being connected, as the standards of OAuth say. */
const oauth = [
  'GET /.well-known/oauth-authorization-server',
  'GET /.well-known/oauth-protected-resource',
  'GET /.well-known/oauth-protected-resource/mcp',
  'POST /oauth/register',
  'POST /oauth/revoke',
  'POST /oauth/token',
].flatMap((name) => [name, name.replace(/^\w+/, 'OPTIONS')])

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

const named = routes.map((route) => [`${route.method} ${route.path}`, route] as const)
const pathOf = ({ path }: Pick<Route, 'path'>) =>
  path.replace(/\{\w+\}/g, 'unit_00000000000000000000000000000000')

type Documented = {
  operationId: string
  security: object[]
  parameters?: { name: string }[]
  responses: Record<string, object>
  'x-audit-action': string
  'x-rate-limit'?: object
}

const document = openApiDocument(routes) as { paths: Record<string, Record<string, Documented>> }

test('openapi.json and the list of routes have the same routes', () => {
  const documented = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect(new Set(documented)).toEqual(new Set(named.map(([name]) => name)))
})

test('no two routes have the same method and path, or the same operation id', () => {
  expect(new Set(named.map(([name]) => name)).size).toBe(routes.length)
  const ids = Object.values(document.paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  )
  expect(new Set(ids).size).toBe(ids.length)
})

test('every action that changes something is one of the changes of the audit log, but for trials and what is heard', () => {
  const trials = ['unit.egress.check', 'agent.dryRun', 'payment.hear']
  const changes = new Set(routes.filter(({ kind }) => kind === 'change').map(({ action }) => action))
  changes.add('unit.terminal')
  expect([...changes].filter((action) => !trials.includes(action)).toSorted()).toEqual(
    changeActions.toSorted(),
  )
})

test('the routes without authentication are those of a reviewed list', () => {
  const open = named.filter(([, { auth }]) => auth === 'none').map(([name]) => name)
  expect(open.toSorted()).toEqual(openRoutes)
})

test('the server answers at the routes, at /mcp, at a few pages, and nowhere else (S34)', () => {
  const heads = routes.filter(({ method }) => method === 'GET').map(({ path }) => `HEAD ${path}`)
  const ofMcp = mcpMethods.flatMap((method) => mcpPaths.map((path) => `${method} ${path}`))
  // Where the dashboard is built, its pages are served as well.
  const ofDashboard = ['GET /*', 'GET /t', 'GET /t*']
  // The tree has no line for `/e2b`, at which itself nothing answers; its GET looks as one of the dashboard.
  const ofE2b = e2bMethods.filter((method) => method !== 'GET').map((method) => `${method} /*`)
  // Nor one for what is only the beginning of a port's path.
  const ofPorts = portMethods.map((method) => `${method} /v1/units/{id}*`)
  const answered = [
    ...named.map(([name]) => name),
    ...ofPorts,
    ...heads,
    ...ofMcp,
    ...ofE2b,
    ...openPages,
    ...documentation,
    ...downloads,
    ...oauth,
  ]
  const found = served(createServer(service.app)).filter((each) => !ofDashboard.includes(each))
  expect(found.toSorted()).toEqual(answered.toSorted())
})

/** The routes of the framework, from the tree that it prints. */
function served(server: ReturnType<typeof createServer>): string[] {
  const trail: string[] = []
  return server
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const [, indent = '', part = '', methods = ''] = /^([│├└─ ]*)(\S+) \(([A-Z, ]+)\)$/.exec(line) ?? []
      const depth = indent.length / 4
      trail.splice(depth === 0 ? 0 : depth - 1, trail.length, part)
      const path = trail.join('').replace(/:(\w+)/g, '{$1}')
      return methods === '' ? [] : methods.split(', ').map((method) => `${method} ${path}`)
    })
}

describe('a path answers 405 to every method that is not documented (reliability Z3)', () => {
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
  test.each([...new Set(routes.map(({ path }) => path))])('%s', async (path) => {
    // `/v1/units/summary` is also a `/v1/units/{id}`.
    const known = routes.filter((route) =>
      new RegExp(`^${route.path.replace(/\{\w+\}/g, '[^/]+')}$`).test(path),
    )
    const allowed = [
      ...new Set(known.flatMap(({ method }): string[] => (method === 'GET' ? ['GET', 'HEAD'] : [method]))),
    ]
    for (const method of methods.filter((each) => !allowed.includes(each))) {
      for (const key of [team.key, undefined]) {
        const response = await service.fetch(method, pathOf({ path }), key === undefined ? {} : { key })
        await response.arrayBuffer()
        expect([method, response.status]).toEqual([method, 405])
        expect(response.headers.get('allow')?.split(', ').toSorted()).toEqual(allowed.toSorted())
      }
    }
  })
})

describe('a paginated list (reliability Z6)', () => {
  const lists = routes.filter((route) => route.query instanceof z.ZodObject && 'limit' in route.query.shape)
  const idOf: Record<string, string> = {}
  let stranger: TestTeam

  beforeAll(async () => {
    stranger = await makeTeam(service)
    idOf['unit'] = (await makeUnit(service, stranger)).id
  })

  test.each(lists.map((route) => [`${route.method} ${route.path}`, route] as const))(
    '%s refuses invalid limits and cursors',
    async (_name, route) => {
      const path = route.path.replace('{id}', idOf['unit'] ?? '')
      for (const query of [
        'limit=0',
        'limit=-1',
        'limit=1000000000',
        'limit=1e1',
        'limit=',
        'limit=1&limit=2',
      ]) {
        const { status } = await service.call('GET', `${path}?${query}`, { key: stranger.key })
        expect([query, status]).toEqual([query, 400])
      }
      if (!(route.query instanceof z.ZodObject) || !('cursor' in route.query.shape)) return
      for (const cursor of ['x', '%00', btoa('unit_1'), btoa("' or 1=1"), '😀', 'a'.repeat(10_000)]) {
        const { status } = await service.call('GET', `${path}?cursor=${encodeURIComponent(cursor)}`, {
          key: stranger.key,
        })
        expect([cursor, status]).toEqual([cursor, 400])
      }
    },
  )

  test('shows nothing of another team with a cursor of that team', async () => {
    for (let made = 0; made < 2; made += 1) await makeUnit(service, stranger)
    for (const path of ['/v1/units', '/v1/stacks', '/v1/audit']) {
      const theirs = await service.call<{ next: string | null }>('GET', `${path}?limit=1`, {
        key: stranger.key,
      })
      expect(theirs.body.next).not.toBeNull()
      const mine = await service.call('GET', `${path}?cursor=${theirs.body.next}`, { key: team.key })
      expect(mine.status).toBe(200)
      expect(JSON.stringify(mine.body)).not.toMatch(new RegExp(`${stranger.teamId}|${stranger.keyId}`))
    }
  })
})

describe('every route', () => {
  // Slowly enough for the limit on failures of these tests’ address.
  beforeEach(() => {
    service.clock.advance(3 * SECOND)
  })

  test.each(named)('%s documents its security, errors and rate limit', (_name, route) => {
    const operation = document.paths[route.path]?.[route.method.toLowerCase()]
    const open = route.auth === 'none'
    expect(operation?.security).toEqual(open ? [] : [{ apiKey: [] }, { session: [] }])
    expect(Object.keys(operation?.responses ?? {})).toEqual(
      expect.arrayContaining(open ? ['400', '500'] : ['400', '401', '403', '429', '500', '503']),
    )
    expect(operation?.['x-rate-limit'] !== undefined).toBe(!open)
    expect(operation?.['x-audit-action']).toBe(route.action)
  })

  test.each(named.filter(([, { auth }]) => auth === 'caller'))(
    '%s refuses a call without credentials',
    async (_name, route) => {
      const answer = await service.call(route.method, pathOf(route))
      expect(answer).toMatchObject({ status: 401, body: { error: { code: 'unauthorized' } } })
      const wrong = await service.call(route.method, pathOf(route), { key: 'wrong' })
      expect(wrong.status).toBe(401)
    },
  )

  test.each(named.filter(([, { auth }]) => auth === 'caller'))(
    '%s writes one audit row',
    async (name, route) => {
      const requestId = name.replace(' ', '')
      const answer = await service.call(route.method, pathOf(route), {
        key: team.key,
        headers: { 'x-request-id': requestId },
      })
      const rows = async () =>
        await service.app.db
          .selectFrom('audit')
          .select(['action', 'status'])
          .where('request_id', '=', requestId)
          .execute()
      // An endless stream is left by its caller.
      const isStream = route.media === 'text/event-stream' && answer.status === 200
      const status = isStream ? 499 : answer.status
      await expect.poll(rows).toEqual([{ action: route.action, status }])
    },
  )

  test.each(named)('%s refuses an unknown query field', async (_name, route) => {
    const answer = await service.call(route.method, `${pathOf(route)}?surprise=1`, { key: team.key })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'validation' } } })
  })

  test.each(named.filter(([, { auth, kind }]) => auth === 'caller' && kind === 'change'))(
    '%s is refused to a session from another site',
    async (_name, route) => {
      const cookie = await makeSession(service, team)
      const answer = await service.call(route.method, pathOf(route), {
        cookie,
        headers: { origin: 'https://evil.test' },
      })
      expect(answer.status).toBe(403)
    },
  )
})

test.each(named)('%s is a read exactly when it is a GET and no WebSocket', (_name, route) => {
  expect(route.kind).toBe(route.method === 'GET' && route.status !== 101 ? 'read' : 'change')
})

// A route that creates something returns 201, and a retry must not create it twice (reliability F20).
test.each(named)('%s takes an Idempotency-Key exactly when it creates something', (_name, route) => {
  expect(route.takesIdempotencyKey).toBe(route.status === 201)
  const parameters = document.paths[route.path]?.[route.method.toLowerCase()]?.parameters ?? []
  expect(parameters.some(({ name }) => name === 'Idempotency-Key')).toBe(route.takesIdempotencyKey)
})
