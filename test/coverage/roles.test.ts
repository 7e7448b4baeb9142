// S2: what each role may do, as a table of every operation. A route without a line fails, and so does a line without
// a route; each line is a decision. Every call would succeed for a caller that is allowed it.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { MINUTE, SECOND } from '../../src/lib/clock.ts'
import {
  exampleBody,
  fill,
  isClosed,
  jsonBodyOf,
  type Named,
  operations,
  paramsOf,
  requiredQuery,
} from '../support/document.ts'
import {
  insertConnectedClient,
  makeEndedTokens,
  makeHosted,
  makeInvite,
  makeKey,
  makeMember,
  makeProcess,
  makeSharedTeam,
  makeUnit,
  type TestMember,
} from '../support/make.ts'
import { answerCode } from '../support/code.ts'
import { type CallOptions, type Service, startService } from '../support/service.ts'
import { type FakeStripe, signedEvent, startStripe } from '../support/stripe.ts'

const table = `
                                                            owner  admin  member  key  client  none
POST   /v1/units                                            201    201    201    201   201    401
GET    /v1/units                                            200    200    200    200   200    401
GET    /v1/units/summary                                    200    200    200    200   200    401
GET    /v1/units/{id}                                       200    200    200    200   200    401
PATCH  /v1/units/{id}                                       200    200    200    200   200    401
DELETE /v1/units/{id}                                       200    200    200    200   200    401
POST   /v1/units/{id}/exec                                  200    200    200    200   200    401
GET    /v1/units/{id}/exec                                  400    400    400    400   400    401
POST   /v1/units/{id}/code                                  200    200    200    200   200    401
POST   /v1/units/{id}/code/contexts                         200    200    200    200   200    401
GET    /v1/units/{id}/code/contexts                         200    200    200    200   200    401
POST   /v1/units/{id}/code/contexts/{contextId}/restart     200    200    200    200   200    401
POST   /v1/units/{id}/code/contexts/{contextId}/interrupt   200    200    200    200   200    401
DELETE /v1/units/{id}/code/contexts/{contextId}             200    200    200    200   200    401
POST   /v1/units/{id}/processes                             201    201    201    201   201    401
GET    /v1/units/{id}/process-table                         200    200    200    200   200    401
POST   /v1/units/{id}/process-table/{pid}/signal            200    200    200    200   200    401
GET    /v1/units/{id}/processes                             200    200    200    200   200    401
GET    /v1/units/{id}/processes/{processId}                 200    200    200    200   200    401
DELETE /v1/units/{id}/processes/{processId}                 200    200    200    200   200    401
GET    /v1/units/{id}/processes/{processId}/output          200    200    200    200   200    401
POST   /v1/units/{id}/processes/{processId}/signal          200    200    200    200   200    401
POST   /v1/units/{id}/processes/{processId}/input           200    200    200    200   200    401
POST   /v1/units/{id}/processes/{processId}/keep-awake      200    200    200    200   200    401
GET    /v1/units/{id}/logs                                  200    200    200    200   200    401
GET    /v1/units/{id}/metrics                               200    200    200    200   200    401
GET    /v1/units/{id}/metrics/history                       200    200    200    200   200    401
GET    /v1/metrics/recent                                   200    200    200    200   200    401
GET    /v1/units/{id}/egress                                200    200    200    200   200    401
GET    /v1/units/{id}/egress/log                            200    200    200    200   200    401
PUT    /v1/units/{id}/egress                                200    200    200    200   200    401
PUT    /v1/units/{id}/secrets/{name}                        200    200    200    200   200    401
POST   /v1/units/{id}/calls                                 200    200    200    200   200    401
POST   /v1/units/{id}/egress/check                          200    200    200    200   200    401
POST   /v1/units/{id}/files                                 200    200    200    200   200    401
PUT    /v1/units/{id}/files                                 200    200    200    200   200    401
GET    /v1/units/{id}/files                                 200    200    200    200   200    401
DELETE /v1/units/{id}/files                                 200    200    200    200   200    401
GET    /v1/units/{id}/files/content                         200    200    200    200   200    401
PUT    /v1/units/{id}/files/content                         200    200    200    200   200    401
GET    /v1/units/{id}/files/watch                           200    200    200    200   200    401
GET    /v1/units/{id}/files/facts                           200    200    200    200   200    401
POST   /v1/units/{id}/files/move                            200    200    200    200   200    401
POST   /v1/units/{id}/directory                             200    200    200    200   200    401
GET    /v1/units/{id}/directory                             200    200    200    200   200    401
GET    /v1/units/{id}/archive                               200    200    200    200   200    401
PUT    /v1/units/{id}/archive                               200    200    200    200   200    401
POST   /v1/units/{id}/expose                                200    200    200    200   200    401
POST   /v1/units/{id}/fork                                  201    201    201    201   201    401
POST   /v1/units/{id}/stop                                  200    200    200    200   200    401
POST   /v1/units/{id}/start                                 200    200    200    200   200    401
POST   /v1/units/{id}/sleep                                 200    200    200    200   200    401
POST   /v1/stacks                                           201    201    201    201   201    401
GET    /v1/stacks                                           200    200    200    200   200    401
GET    /v1/stacks/{id}                                      200    200    200    200   200    401
DELETE /v1/stacks/{id}                                      200    200    200    200   200    401
POST   /v1/stacks/{id}/fork                                 201    201    201    201   201    401
GET    /v1/pricing                                          200    200    200    200   200    401
GET    /v1/quota                                            200    200    200    200   200    401
GET    /v1/usage                                            200    200    200    200   200    401
GET    /v1/recipes                                          200    200    200    200   200    401
GET    /v1/recipes/{name}                                   200    200    200    200   200    401
GET    /v1/secrets                                          200    200    200    200   200    401
PUT    /v1/secrets/{name}                                   200    200    403    200   200    401
DELETE /v1/secrets/{name}                                   200    200    403    200   200    401
GET    /v1/events                                           200    200    200    200   200    401
GET    /v1/audit                                            200    200    200    200   200    401
GET    /v1/agents                                           200    200    200    200   200    401
PATCH  /v1/agents/{id}                                      200    200    403    403   403    401
DELETE /v1/agents/{id}                                      200    200    403    403   403    401
POST   /v1/agents/{id}/dry-run                              200    200    403    403   403    401
GET    /v1/hosted-agents                                    200    200    200    200   200    401
POST   /v1/hosted-agents                                    201    201    201    403   403    401
GET    /v1/hosted-agents/{id}                               200    200    200    200   200    401
PATCH  /v1/hosted-agents/{id}                               200    200    403    403   403    401
DELETE /v1/hosted-agents/{id}                               200    200    403    403   403    401
GET    /v1/keys                                             200    200    200    200   200    401
POST   /v1/keys                                             201    201    201    403   403    401
PATCH  /v1/keys/{id}                                        200    200    403    403   403    401
DELETE /v1/keys/{id}                                        200    200    403    403   403    401
GET    /v1/me                                               200    200    200    403   403    401
PATCH  /v1/me                                               200    200    200    403   403    401
POST   /v1/teams                                            201    201    201    403   403    401
PATCH  /v1/teams/{id}                                       200    200    403    403   403    401
DELETE /v1/teams/{id}                                       200    403    403    403   403    401
GET    /v1/teams/{id}/members                               200    200    200    403   403    401
PATCH  /v1/teams/{id}/members/{userId}                      200    403    403    403   403    401
DELETE /v1/teams/{id}/members/{userId}                      200    200    403    403   403    401
POST   /v1/teams/{id}/invites                               201    201    403    403   403    401
DELETE /v1/teams/{id}/invites/{inviteId}                    200    200    403    403   403    401
POST   /v1/teams/{id}/payments                              201    201    403    403   403    401
GET    /v1/teams/{id}/payments                              200    200    403    403   403    401
POST   /v1/invites/{token}/accept                           200    200    200    403   403    401
POST   /v1/support                                          201    201    201    201   201    401
GET    /v1/invites/{token}                                  200    200    200    200   200    200
GET    /v1/auth/providers                                   200    200    200    200   200    200
GET    /v1/openapi.json                                     200    200    200    200   200    200
POST   /v1/webhooks/stripe                                  200    200    200    200   200    200
`

/** The bodies of calls that need one. */
const bodies: Record<string, (world: World) => unknown> = {
  'POST /v1/units': () => ({ spec: { name: unique(), image: 'node:22' } }),
  'POST /v1/units/{id}/exec': () => ({ cmd: ['true'] }),
  'POST /v1/units/{id}/code': () => ({ code: '1' }),
  'POST /v1/units/{id}/code/contexts': () => ({}),
  'POST /v1/units/{id}/processes': () => ({ cmd: ['true'] }),
  'POST /v1/units/{id}/processes/{processId}/keep-awake': () => ({}),
  'POST /v1/units/{id}/processes/{processId}/input': () => ({ data: 'x' }),
  'POST /v1/units/{id}/processes/{processId}/signal': () => ({ signal: 'TERM' }),
  'POST /v1/units/{id}/process-table/{pid}/signal': () => ({ signal: 'HUP' }),
  'POST /v1/units/{id}/files': () => ({ path: '/a', contentBase64: '' }),
  'POST /v1/units/{id}/files/move': () => ({ path: '/a', to: '/b' }),
  'POST /v1/units/{id}/directory': () => ({ path: '/made' }),
  'POST /v1/units/{id}/expose': () => ({ port: 8080 }),
  'POST /v1/units/{id}/fork': () => ({ name: unique() }),
  'PUT /v1/units/{id}/egress': () => ({ mode: 'open', siblings: 'team' }),
  'PUT /v1/units/{id}/secrets/{name}': () => ({ value: 'sk-2' }),
  'POST /v1/units/{id}/calls': () => ({ calls: [{ method: 'process/start' }] }),
  'POST /v1/units/{id}/egress/check': () => ({ host: 'example.com', port: 443 }),
  'POST /v1/units/{id}/sleep': () => ({ sleep: '1h' }),
  'PATCH /v1/units/{id}': () => ({ metadata: { app: 'shop' } }),
  'POST /v1/stacks': () => ({ name: unique() }),
  'POST /v1/stacks/{id}/fork': () => ({ into: unique() }),
  'PATCH /v1/agents/{id}': () => ({ name: 'renamed' }),
  'POST /v1/agents/{id}/dry-run': () => ({ policy: { maxConcurrentUnits: 1 } }),
  'POST /v1/hosted-agents': () => ({ environment: unique(), environmentKey: 'sk-1' }),
  'PATCH /v1/hosted-agents/{id}': () => ({ on: false }),
  'POST /v1/keys': () => ({ name: 'another' }),
  'PATCH /v1/keys/{id}': () => ({ name: 'renamed' }),
  'PUT /v1/secrets/{name}': () => ({ value: 'sk-1', hosts: ['api.example.com'] }),
  'PATCH /v1/me': () => ({ name: 'Renamed' }),
  'POST /v1/support': () => ({ topic: 'idea', message: 'more' }),
  'POST /v1/teams': () => ({ name: 'Another' }),
  'PATCH /v1/teams/{id}': () => ({ name: 'Renamed' }),
  'PATCH /v1/teams/{id}/members/{userId}': () => ({ role: 'admin' }),
  'POST /v1/teams/{id}/payments': () => ({ amountCents: 500 }),
  'POST /v1/teams/{id}/invites': () => ({ email: `${unique()}@example.test` }),
}

/** The values of path parameters, made for each call, by the first part of the path. */
const things: Record<
  string,
  Record<string, (world: World, made: Record<string, string>) => Promise<string>>
> = {
  units: {
    id: async (world) => (await newUnit(world)).id,
    contextId: async () => 'ctx_1',
    processId: async ({ key }, { id = '' }) => await makeProcess(service, { key }, id),
    pid: async () => '1',
    name: async () => 'KEY',
  },
  stacks: { id: async (world) => (await newUnit(world)).stackId },
  keys: { id: async ({ teamId, owner }) => (await makeKey(service, { teamId, ...owner })).id },
  agents: { id: async ({ teamId, owner }) => (await makeKey(service, { teamId, ...owner })).id },
  'hosted-agents': {
    id: async ({ teamId, owner }) => await makeHosted(service, { teamId, ...owner }, unique()),
  },
  teams: {
    id: async ({ teamId }) => teamId,
    userId: async ({ teamId }) => (await makeMember(service, teamId, 'member')).userId,
    inviteId: async (world) => (await newInvite(world, `${unique()}@example.test`)).id,
  },
  invites: { token: async (world) => await invitationElsewhere(world) },
  recipes: { name: async () => 'redis' },
  secrets: { name: async ({ key }) => await newSecret(key) },
}

const newSecret = async (key: string): Promise<string> => {
  const body = { value: 'sk-1', hosts: ['api.example.com'] }
  await service.call('PUT', '/v1/secrets/KEY', { key, body })
  return 'KEY'
}
const newUnit = async ({ key }: World): Promise<Unit> => {
  const env = { API_KEY: { secret: 'KEY', value: 'sk-1', hosts: ['api.example.com'] } }
  const unit = await makeUnit(service, { key }, { ports: [8080], env })
  await service.fetch('PUT', `/v1/units/${unit.id}/files?path=/a`, { key, body: 'x' })
  return unit
}
const newInvite = async ({ teamId, owner }: World, email: string) =>
  await makeInvite(service, { teamId, cookie: owner.cookie, email })

/** An invitation to another team, for the address of the caller. */
async function invitationElsewhere({ caller }: World): Promise<string> {
  const { id: teamId, owner } = await makeSharedTeam(service)
  const email = caller?.email ?? `${unique()}@example.test`
  return (await makeInvite(service, { teamId, cookie: owner.cookie, email })).token
}

const roles = ['owner', 'admin', 'member', 'key', 'client', 'none'] as const
type Who = (typeof roles)[number]

const lines = table.trim().split('\n').slice(1)
const decided = new Map<string, number[]>(
  lines.map((line) => {
    const [method = '', path = '', ...statuses] = line.trim().split(/\s+/)
    return [`${method} ${path}`, statuses.map(Number)] as const
  }),
)

type World = {
  teamId: string
  owner: TestMember
  admin: TestMember
  member: TestMember
  key: string
  client: string
  /** The person who calls, or null. */
  caller: TestMember | null
}

let service: Service
let stripe: FakeStripe

beforeAll(async () => {
  stripe = await startStripe()
  service = await startService({ supportEmail: 'support@operator.test', payments: stripe.settings })
  answerCode(service)
})
afterAll(async () => {
  await service.close()
  await stripe.close()
})

let count = 0
const unique = () => `thing-${count++}`

async function makeWorld(): Promise<World> {
  const { id: teamId, owner } = await makeSharedTeam(service)
  const [admin, member] = [
    await makeMember(service, teamId, 'admin'),
    await makeMember(service, teamId, 'member'),
  ]
  const { userId } = owner
  const { secret: key } = await makeKey(service, { teamId, userId })
  const client = await insertConnectedClient(service, { teamId, userId })
  return { teamId, owner, admin, member, key, client, caller: null }
}

function credentialOf(world: World, who: Who): { caller: TestMember | null; sent: CallOptions } {
  if (who === 'none') return { caller: null, sent: {} }
  if (who === 'key' || who === 'client') return { caller: null, sent: { key: world[who] } }
  const headers = { origin: service.baseUrl, 'x-berth-team': world.teamId }
  return { caller: world[who], sent: { cookie: world[who].cookie, headers } }
}

async function statusFor(named: Named, world: World, who: Who): Promise<number> {
  const { caller, sent } = credentialOf(world, who)
  const made = things[named.path.split('/')[2] ?? ''] ?? {}
  const params: Record<string, string> = {}
  for (const name of paramsOf(named.path)) {
    const make = made[name]
    if (!make) throw new Error(`say in \`things\` what {${name}} is in ${named.path}`)
    params[name] = await make({ ...world, caller }, params)
  }
  const body = bodies[named.name]?.(world)
  if (jsonBodyOf(named) && body === undefined) throw new Error(`say in \`bodies\` what ${named.name} is sent`)
  const url = fill(named.path, params) + requiredQuery(named)
  const answer = await service.fetch(named.method, url, withBody(named, sent, body))
  await answer.body?.cancel()
  return answer.status
}

/** A body that is not JSON is bytes; one of the payment provider is signed. */
function withBody(named: Named, sent: CallOptions, body: unknown): CallOptions {
  if (named.operation.requestBody === undefined || jsonBodyOf(named)) return { ...sent, body }
  if (!named.path.startsWith('/v1/webhooks/')) return { ...sent, body: exampleBody(named) }
  const event = signedEvent('customer.created', { id: 'cus_1' }, { at: service.clock.now() })
  const headers = { ...sent.headers, 'stripe-signature': event.signature }
  return { ...sent, body: event.body, headers }
}

test('the table of roles has every operation, and no other', () => {
  expect([...decided.keys()].toSorted()).toEqual(operations.map(({ name }) => name).toSorted())
  for (const [name, statuses] of decided)
    expect([name, statuses]).toEqual([name, Array(6).fill(expect.any(Number))])
})

test('an operation that takes a credential is refused without one, and the others are not', () => {
  for (const named of operations) {
    expect([named.name, decided.get(named.name)?.at(-1) === 401]).toEqual([named.name, isClosed(named)])
  }
})

describe('each role is answered as the table says', () => {
  test.each(operations.map((named) => [named.name, named] as const))('%s', async (name, named) => {
    const world = await makeWorld()
    const statuses = new Map<Who, number>()
    // The role that may do least comes first, because an allowed call could be the end of the team.
    for (const who of roles.toReversed()) statuses.set(who, await statusFor(named, world, who))
    expect(roles.map((who) => statuses.get(who))).toEqual(decided.get(name))
  })
})

test('an access token that has ended is refused with 401 for every operation', async () => {
  const { teamId, owner, key } = await makeWorld()
  const unit = await newUnit({ key } as World)
  const ended = await makeEndedTokens(service, { teamId, userId: owner.userId })
  // The guesses of the tests before are forgotten.
  service.clock.advance(MINUTE)
  for (const named of operations.filter(isClosed)) {
    const url = fill(named.path, { id: named.path.startsWith('/v1/units') ? unit.id : teamId })
    for (const [what, token] of Object.entries(ended)) {
      // Slowly enough for the limit on guesses from one address.
      service.clock.advance(SECOND)
      const answer = await service.fetch(named.method, url, { key: token })
      await answer.body?.cancel()
      expect([named.name, what, answer.status]).toEqual([named.name, what, 401])
    }
  }
}, 120_000)

describe('beyond the table of roles', () => {
  const act = async (by: TestMember, method: string, path: string, body?: unknown) =>
    (await service.call(method, path, { cookie: by.cookie, headers: { origin: service.baseUrl }, body }))
      .status

  test('the person who made a key can change and revoke it, in any role', async () => {
    const { teamId, member } = await makeWorld()
    const { id } = await makeKey(service, { teamId, userId: member.userId })
    const headers = { origin: service.baseUrl, 'x-berth-team': teamId }
    const by = { cookie: member.cookie, headers }
    expect((await service.call('PATCH', `/v1/keys/${id}`, { ...by, body: { name: 'mine' } })).status).toBe(
      200,
    )
    expect((await service.call('DELETE', `/v1/keys/${id}`, by)).status).toBe(200)
  })

  test('every member but the last owner may leave, and an admin cannot remove owners and admins', async () => {
    const { teamId, owner, admin, member } = await makeWorld()
    const other = await makeMember(service, teamId, 'admin')
    const members = `/v1/teams/${teamId}/members`
    expect(await act(admin, 'DELETE', `${members}/${other.userId}`)).toBe(403)
    expect(await act(admin, 'DELETE', `${members}/${owner.userId}`)).toBe(403)
    expect(await act(admin, 'PATCH', `${members}/${admin.userId}`, { role: 'owner' })).toBe(403)
    expect(await act(owner, 'DELETE', `${members}/${owner.userId}`)).toBe(409)
    expect(await act(owner, 'PATCH', `${members}/${owner.userId}`, { role: 'admin' })).toBe(409)
    for (const person of [member, admin]) {
      expect(await act(person, 'DELETE', `${members}/${person.userId}`)).toBe(200)
    }
  })

  test('a person cannot invite another above their own role', async () => {
    const { teamId, owner, admin } = await makeWorld()
    for (const by of [owner, admin]) {
      const invite = async (role: string) =>
        await act(by, 'POST', `/v1/teams/${teamId}/invites`, { email: `${unique()}@example.test`, role })
      expect([await invite('owner'), await invite('admin'), await invite('member')]).toEqual([400, 201, 201])
    }
  })
})
