// S1: a caller outside a team reaches nothing of it, by any operation of openapi.json that takes a credential, and by
// any name of anything. New operations in the document are tried here too.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { MINUTE, SECOND } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import { revokeCredential } from '../../src/store/credentials.ts'
import { insertMember } from '../../src/store/members.ts'
import {
  components,
  fill,
  isClosed,
  jsonBodyOf,
  type Named,
  operations,
  paramsOf,
  requiredQuery,
  sampleBodies,
} from '../support/document.ts'
import {
  insertConnectedClient,
  makeEndedTokens,
  makeKey,
  makeSession,
  makeTeam,
  makeUnit,
  type TestTeam,
} from '../support/make.ts'
import { answerCode } from '../support/code.ts'
import { type CallOptions, type Service, startService } from '../support/service.ts'
import { partOf } from '../support/part-of.ts'
import { makeVictim, rowsOfTeam, type Victim } from '../support/victim.ts'

let service: Service
let victim: Victim
let stranger: TestTeam & { cookie: string; unit: Unit; shared: string }
let callers: Record<string, CallOptions>

beforeAll(async () => {
  service = await startService({ loops: false })
  answerCode(service)
  victim = await makeVictim(service)
  stranger = await makeStranger()
  callers = await makeCallers()
})
afterAll(async () => await service.close())

const headers = () => ({ origin: service.baseUrl })

/** A person with their own team and units. */
async function makeStranger() {
  const team = await makeTeam(service)
  const cookie = await makeSession(service, team)
  const shared = await service.call<{ team: { id: string } }>('POST', '/v1/teams', {
    cookie,
    headers: headers(),
    body: { name: 'Elsewhere' },
  })
  return { ...team, cookie, shared: shared.body.team.id, unit: await makeUnit(service, team) }
}

/** Callers that have nothing to do with the victim’s team any more. */
async function makeCallers(): Promise<Record<string, CallOptions>> {
  const { teamId, userId } = victim
  const { db, clock } = service.app
  const past = new Date(clock.now().getTime() - MINUTE)
  const revoked = await makeKey(service, victim)
  await revokeCredential(db, { teamId, id: revoked.id, at: past })
  const expired = await makeKey(service, { teamId, userId, policy: { expiresAt: past.toISOString() } })
  const removed = await makeTeam(service)
  await insertMember(db, { teamId, userId: removed.userId, role: 'owner', at: past })
  const cookie = await makeSession(service, removed)
  const named = { ...headers(), 'x-berth-team': teamId }
  expect((await service.call('GET', '/v1/units', { cookie, headers: named })).status).toBe(200)
  await db
    .deleteFrom('memberships')
    .where('user_id', '=', removed.userId)
    .where('team_id', '=', teamId)
    .execute()
  ended = await makeEndedTokens(service, { teamId, userId })
  unauthenticated = new Set(['no credential', 'a revoked key', 'an expired key', ...Object.keys(ended)])
  return {
    'no credential': {},
    'a revoked key': { key: revoked.secret },
    'an expired key': { key: expired.secret },
    ...Object.fromEntries(Object.entries(ended).map(([what, key]) => [what, { key }])),
    'a key of another team': { key: stranger.key },
    'a session of another team': { cookie: stranger.cookie, headers: headers() },
    'a session of another team that names this one': { cookie: stranger.cookie, headers: named },
    'a session of a member who was removed': { cookie, headers: headers() },
    'a session of a member who was removed, which names the team': { cookie, headers: named },
  }
}

/** Access tokens among them that have ended. */
let ended: Record<string, string>
/** The callers that are not authenticated. */
let unauthenticated: Set<string>

let before: unknown
let engineCalls: number
beforeEach(async () => {
  // The token is valid for an hour, and each test here takes several minutes.
  callers['an access token of another team'] = { key: await insertConnectedClient(service, stranger) }
  before = await rowsOfTeam(service, victim.teamId)
  engineCalls = service.engine.calls.length
})

async function expectUntouched(): Promise<void> {
  expect(await rowsOfTeam(service, victim.teamId)).toEqual(before)
  const ids = Object.values(victim.units).map(({ id }) => id)
  const asked = service.engine.calls.slice(engineCalls).filter(({ id }) => id !== null && ids.includes(id))
  expect(asked).toEqual([])
}

function endless({ operation }: Named): boolean {
  const content = operation.responses['200']?.content ?? {}
  return 'text/event-stream' in content && !('application/json' in content)
}

/** Checks that the answer has nothing of the victim beside what was sent, and returns its status. */
async function ask(named: Named, url: string, sent: CallOptions, body: unknown): Promise<number> {
  const requestId = newId('request')
  // Slowly enough for the limit on guesses from one address.
  service.clock.advance(SECOND)
  const answer = await service.call(named.method, url, {
    ...sent,
    body,
    headers: { ...sent.headers, 'x-request-id': requestId },
  })
  let text = JSON.stringify(answer.body)
  for (const name of Object.values(victim.names)) if (url.includes(name)) text = text.replaceAll(name, '')
  expect(text).not.toMatch(/canary/i)
  for (const name of Object.values(victim.names)) expect(text).not.toContain(name)
  const rows = await service.app.db
    .selectFrom('audit')
    .select(['team_id', 'status'])
    .where('request_id', '=', requestId)
    .execute()
  if (answer.status === 401) expect(rows).toEqual([])
  for (const row of rows) {
    expect(row.team_id).not.toBe(victim.teamId)
    // An endless stream is left once it has begun.
    expect([answer.status, ...(endless(named) ? [499] : [])]).toContain(row.status)
  }
  expect(rows.length).toBeLessThanOrEqual(1)
  return answer.status
}

/** Its name is looked up in the caller's own team, where a call may make it. */
const ownNames = 'PUT /v1/secrets/{name}'

const closed = operations.filter(isClosed)
const withParams = closed.filter(({ path }) => paramsOf(path).length > 0)

describe('a caller outside the team cannot reach anything of it', () => {
  test.each(withParams.map((named, index) => [named.name, named, index] as const))(
    '%s',
    async (_name, named, index) => {
      const names: string[] = [
        ...Object.values(victim.names),
        `unit_${'0'.repeat(32)}`,
        `team_${'0'.repeat(32)}`,
      ]
      const bodies = sampleBodies(named, 24)
      // Who is not authenticated is refused before any name is read. Of the others one tries all names, by turns.
      const authenticated = Object.keys(callers).filter((who) => !unauthenticated.has(who))
      const tryingAll = authenticated[index % authenticated.length]
      for (const [who, sent] of Object.entries(callers)) {
        const some = who === tryingAll ? names : partOf(names, unauthenticated.has(who) ? 1 : 3)
        for (const params of pathsTo(named, some)) {
          const url = fill(named.path, params) + requiredQuery(named)
          const seen: number[] = []
          // A schema cannot express every rule, so some bodies are invalid; at least one is not.
          for (const body of bodies) {
            seen.push(await ask(named, url, sent, body))
            if (seen.at(-1) !== 400) break
          }
          const allowed = unauthenticated.has(who)
            ? [401]
            : [403, 404, ...(named.name === ownNames ? [200, 400] : [])]
          expect(allowed, `${who}, ${url}: ${seen.join(', ')}`).toContain(seen.at(-1))
        }
      }
      await expectUntouched()
    },
    120_000,
  )
})

/** Each name as the first parameter, and as the others behind what belongs to the team and to the caller. */
function pathsTo({ path }: Named, names: string[]): Record<string, string>[] {
  const [first = '', ...others] = paramsOf(path)
  if (others.length === 0) return names.map((name) => ({ [first]: name }))
  const owned = path.startsWith('/v1/units/')
    ? [victim.units.running.id, stranger.unit.id]
    : [victim.teamId, stranger.shared]
  return owned.flatMap((own) =>
    names.map((name) => ({ [first]: own, ...Object.fromEntries(others.map((other) => [other, name])) })),
  )
}

describe('the name of another team’s stack stands for the caller’s own stack', () => {
  const fieldsOf = (named: Named) => {
    const schema = JSON.stringify(jsonBodyOf(named) ?? {})
    return ['stack', 'into'].filter((field) => new RegExp(`"${field}"`).test(resolved(schema)))
  }
  const taking = closed.flatMap((named) =>
    fieldsOf(named).map((field) => [named.name, field, named] as const),
  )

  test('in some operations', () => {
    expect(taking.map(([name, field]) => `${name} ${field}`)).toEqual(
      expect.arrayContaining([
        'POST /v1/units stack',
        'POST /v1/units/{id}/fork stack',
        'POST /v1/stacks/{id}/fork into',
      ]),
    )
  })

  test.each(taking)('in %s (%s)', async (_name, field, named) => {
    const own = { id: named.path.startsWith('/v1/stacks') ? stranger.unit.stackId : stranger.unit.id }
    const url = fill(named.path, own)
    const spec = { spec: { name: 'visitor', image: 'node:22' } }
    const body = {
      ...(named.path === '/v1/units' ? spec : {}),
      [field]: named.name.endsWith('/sleep') ? true : victim.units.running.name,
      ...(named.name.endsWith('/sleep') ? { sleep: '1h' } : {}),
    }
    const answer = await service.call(named.method, url, { key: stranger.key, body })
    expect(answer.status).toBeLessThan(500)
    const text = JSON.stringify(answer.body)
    for (const name of [victim.teamId, victim.units.running.id, victim.units.running.stackId]) {
      expect(text).not.toContain(name)
    }
    await expectUntouched()
    // An id of the victim’s stack is not a valid name, or unknown.
    const byId = { ...body, [field]: victim.units.running.stackId }
    if (!named.name.endsWith('/sleep')) {
      const refused = await service.call(named.method, url, { key: stranger.key, body: byId })
      expect([400, 403, 404]).toContain(refused.status)
      await expectUntouched()
    }
  })

  test.each([
    ['id', 403],
    ['name', 404],
  ])('and a list filtered by the %s of that stack is refused', async (kind, status) => {
    const stack = kind === 'id' ? victim.units.sleeping.stackId : victim.units.sleeping.name
    const list = await service.call('GET', `/v1/units?all=true&stack=${stack}`, { key: stranger.key })
    expect(list.status).toBe(status)
    await expectUntouched()
  })
})

/** Replaces references in a schema by what they refer to. */
function resolved(schema: string): string {
  return schema.replace(/"#\/components\/schemas\/(\w+)"/g, (_all, name: string) =>
    resolved(JSON.stringify(components[name] ?? {})),
  )
}

describe('a list shows nothing to a caller outside the team', () => {
  // Other callers than those above, whose audit logs contain what they asked for.
  beforeAll(async () => {
    stranger = await makeStranger()
    callers = await makeCallers()
  })

  const lists = closed.filter(({ method, path }) => method === 'GET' && paramsOf(path).length === 0)
  test.each(lists.map((named) => [named.name, named] as const))('%s', async (_name, named) => {
    for (const [who, sent] of Object.entries(callers)) {
      const status = await ask(named, named.path + requiredQuery(named), sent, undefined)
      if (unauthenticated.has(who)) expect([who, status]).toEqual([who, 401])
      else expect([200, 403]).toContain(status)
    }
    await expectUntouched()
  })
})
