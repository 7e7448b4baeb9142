// S3: a caller cannot set a field that is not theirs by naming it in a body. Every object of every body in
// openapi.json gets fields that rows have and callers must not write; the answer is 400, and nothing has changed.
// Every call of every test checks that answers have only documented fields (support/service.ts).

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Issue } from '../../src/contract/errors.ts'
import {
  components,
  fill,
  jsonBodyOf,
  type Named,
  operations,
  paramsOf,
  requiredQuery,
  sampleBodies,
} from '../support/document.ts'
import type { JsonSchema } from '../support/json-schema.ts'
import {
  makeHosted,
  makeInvite,
  makeKey,
  makeMember,
  makeProcess,
  makeSharedTeam,
  makeUnit,
} from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

const foreign = {
  id: 'unit_00000000000000000000000000000000',
  teamId: 'team_00000000000000000000000000000000',
  team_id: 'team_00000000000000000000000000000000',
  userId: 'user_00000000000000000000000000000000',
  state: 'running',
  plan: 'team',
  role: 'owner',
  admin: true,
  personal: false,
  paysAsItGoes: true,
  creditBalanceCents: 1_000_000,
  costCentsSoFar: 0,
  createdAt: '2020-01-01T00:00:00.000Z',
  createdBy: 'user_00000000000000000000000000000000',
  heldBy: 'cred_00000000000000000000000000000000',
  revokedAt: null,
}

let service: Service
let world: Awaited<ReturnType<typeof makeWorld>>

beforeAll(async () => {
  service = await startService({ loops: false, supportEmail: 'support@operator.test' })
  world = await makeWorld()
})
afterAll(async () => await service.close())

async function makeWorld() {
  const { id: teamId, owner } = await makeSharedTeam(service)
  const { secret: key, id: keyId } = await makeKey(service, { teamId, userId: owner.userId })
  const unit = await makeUnit(service, { key }, { ports: [8080] })
  const { userId } = await makeMember(service, teamId, 'member')
  const invite = await makeInvite(service, { teamId, cookie: owner.cookie, email: 'guest@example.test' })
  const hostedId = await makeHosted(service, { teamId, cookie: owner.cookie }, 'env_test')
  const things: Record<string, Record<string, string>> = {
    units: { id: unit.id, pid: '1', name: 'KEY', processId: await makeProcess(service, { key }, unit.id) },
    stacks: { id: unit.stackId },
    secrets: { name: 'KEY' },
    keys: { id: keyId },
    agents: { id: keyId },
    'hosted-agents': { id: hostedId },
    teams: { id: teamId, userId, inviteId: invite.id },
  }
  return { teamId, owner, things }
}

const writing = operations.filter(jsonBodyOf)

describe('a field that callers must not write is refused, and nothing changes', () => {
  test.each(writing.map((named) => [named.name, named] as const))('%s', async (_name, named) => {
    const schema = jsonBodyOf(named) ?? {}
    const before = await rows()
    const places = new Set<string>()
    for (const { at, known, smuggle } of sampleBodies(named, 15).flatMap((body) => objectsOf(schema, body))) {
      if (places.has(at.join('.'))) continue
      places.add(at.join('.'))
      const planted = Object.entries(foreign).filter(([field]) => !known.includes(field))
      const answer = await send(named, smuggle(Object.fromEntries(planted)))
      expect([at, answer.status]).toEqual([at, 400])
      // A generated body can be invalid for other reasons, too.
      const refused = answer.body.error.details.map(({ path }) => path)
      expect(refused).toEqual(expect.arrayContaining(planted.map(([field]) => [...at, field].join('.'))))
    }
    expect([...places]).toContain('')
    expect(await rows()).toEqual(before)
  })
})

async function send(named: Named, body: unknown) {
  const params = world.things[named.path.split('/')[2] ?? ''] ?? {}
  const missing = paramsOf(named.path).filter((name) => params[name] === undefined)
  expect(missing, `say in \`things\` what these are in ${named.path}`).toEqual([])
  const headers = { origin: service.baseUrl, 'x-berth-team': world.teamId }
  const url = fill(named.path, params) + requiredQuery(named)
  return await service.call<Refusal>(named.method, url, { cookie: world.owner.cookie, headers, body })
}

type Refusal = { error: { details: Issue[] } }

type Place = { at: string[]; known: string[]; smuggle: (fields: object) => unknown }

/** The objects in a body that have fixed fields, without those whose names callers choose, such as variables. */
function objectsOf(schema: JsonSchema, body: unknown, at: string[] = []): Place[] {
  const resolved = resolve(schema)
  if (resolved.anyOf) return resolved.anyOf.flatMap((option) => objectsOf(option, body, at)).slice(0, 1)
  const { properties } = resolved
  if (!properties || typeof body !== 'object' || body === null || Array.isArray(body)) return []
  const value = body as Record<string, unknown>
  const own: Place = {
    at,
    known: Object.keys(properties),
    smuggle: (fields) => ({ ...value, ...fields }),
  }
  const within = Object.entries(properties).flatMap(([name, field]) =>
    objectsOf(field, value[name], [...at, name]).map((place) => ({
      ...place,
      smuggle: (fields: object) => ({ ...value, [name]: place.smuggle(fields) }),
    })),
  )
  return [own, ...within]
}

function resolve(schema: JsonSchema): JsonSchema {
  if (schema.$ref === undefined) return schema
  return resolve(components[schema.$ref.replace('#/components/schemas/', '')] ?? {})
}

/** All data that a call could have written, except for the audit log. */
async function rows(): Promise<unknown> {
  const { db } = service.app
  return {
    users: await db.selectFrom('users').selectAll().orderBy('id').execute(),
    teams: await db.selectFrom('teams').selectAll().orderBy('id').execute(),
    memberships: await db
      .selectFrom('memberships')
      .selectAll()
      .orderBy('user_id')
      .orderBy('team_id')
      .execute(),
    invites: await db.selectFrom('invites').selectAll().orderBy('id').execute(),
    credentials: await db.selectFrom('credentials').selectAll().orderBy('id').execute(),
    hosted: await db.selectFrom('hosted_environments').selectAll().orderBy('id').execute(),
    secrets: await db.selectFrom('team_secrets').selectAll().orderBy('name').execute(),
    stacks: await db.selectFrom('stacks').selectAll().orderBy('id').execute(),
    units: await db.selectFrom('units').selectAll().orderBy('id').execute(),
    endpoints: await db.selectFrom('endpoints').selectAll().orderBy('id').execute(),
  }
}
