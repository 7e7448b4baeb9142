// Refresh tokens as clients with several sessions, lost answers and sleeping laptops use them, and as thieves do
// (reliability S8, decisions/agents.md).

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DAY, HOUR, MINUTE } from '../../src/lib/clock.ts'
import { forgetAuthorizations } from '../../src/domain/oauth/forget.ts'
import { everythingKept, formsOf } from '../support/kept.ts'
import { makeSession, makeTeam, type TestTeam } from '../support/make.ts'
import { connect, refresh, registerClient, type TestClient, type Tokens } from '../support/oauth.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let cookie: string
let client: TestClient
let first: Tokens

beforeAll(async () => {
  service = await startService({ loops: false })
})
afterAll(async () => await service.close())
beforeEach(async () => {
  team = await makeTeam(service)
  cookie = await makeSession(service, team)
  ;({ client, tokens: first } = await connect(service, cookie))
})

const next = async (token: string): Promise<Tokens> => {
  const { status, body } = await refresh(service, client, token)
  if (status !== 200) throw new Error(`refused: ${JSON.stringify(body)}`)
  return body
}
const refused = async (token: string) => {
  const { status, body } = await refresh(service, client, token)
  return [status, body.error]
}
const works = async ({ access_token: key }: Pick<Tokens, 'access_token'>) =>
  (await service.call('GET', '/v1/units', { key })).status === 200
const familyRows = async () =>
  await service.app.db
    .selectFrom('oauth_families')
    .innerJoin('credentials', 'credentials.id', 'credential_id')
    .select(['oauth_families.id', 'oauth_families.revoked_at'])
    .where('team_id', '=', team.teamId)
    .execute()

it('a refresh token gives a new pair, and an access token is valid until it expires', async () => {
  const second = await next(first.refresh_token)
  expect(second.refresh_token).not.toBe(first.refresh_token)
  expect([await works(first), await works(second)]).toEqual([true, true])
  service.clock.advance(HOUR)
  expect([await works(first), await works(second)]).toEqual([false, false])
  expect(await works(await next(second.refresh_token))).toBe(true)
})

it('a refresh token used by fifty sessions at once gives all of them the same pair', async () => {
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => refresh(service, client, first.refresh_token)),
  )
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  expect(new Set(answers.map(({ body }) => `${body.access_token} ${body.refresh_token}`)).size).toBe(1)
  const { body } = answers[0] ?? { body: first }
  expect(await works(body)).toBe(true)
  expect(await works(await next(body.refresh_token))).toBe(true)
})

it('an earlier refresh token gives the current pair for ten minutes, and then revokes all', async () => {
  const second = await next(first.refresh_token)
  const third = await next(second.refresh_token)
  await works(third)
  service.clock.advance(9 * MINUTE)
  const again = await next(first.refresh_token)
  expect([again.access_token, again.refresh_token]).toEqual([third.access_token, third.refresh_token])
  expect(again.expires_in).toBeLessThanOrEqual(51 * 60)
  service.clock.advance(2 * MINUTE)
  expect(await refused(first.refresh_token)).toEqual([400, 'invalid_grant'])
  expect([await works(third), await works(second)]).toEqual([false, false])
  expect(await refused(third.refresh_token)).toEqual([400, 'invalid_grant'])
})

it('the previous refresh token gives a pair at any time until the new one was used', async () => {
  const lost = await next(first.refresh_token)
  service.clock.advance(3 * DAY)
  // The access token in the lost answer has expired by now, so there is a newer pair.
  const again = await next(first.refresh_token)
  expect(again.refresh_token).not.toBe(lost.refresh_token)
  expect(await works(again)).toBe(true)
  const after = await next(again.refresh_token)
  expect(await works(after)).toBe(true)
  service.clock.advance(11 * MINUTE)
  expect(await refused(again.refresh_token)).toEqual([400, 'invalid_grant'])
  expect(await works(after)).toBe(false)
})

it('a refresh token is valid for thirty days after its last use', async () => {
  service.clock.advance(29 * DAY)
  const second = await next(first.refresh_token)
  service.clock.advance(29 * DAY)
  const third = await next(second.refresh_token)
  service.clock.advance(30 * DAY)
  expect(await refused(third.refresh_token)).toEqual([400, 'invalid_grant'])
})

it('a refresh token of another client is refused, and stays valid', async () => {
  const other = await registerClient(service)
  const stolen = await refresh(service, other, first.refresh_token)
  expect(stolen).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  expect(await works(await next(first.refresh_token))).toBe(true)
})

it('a wrong secret with a known prefix revokes nothing', async () => {
  const wrong = first.refresh_token.slice(0, -2) + (first.refresh_token.endsWith('AA') ? 'BB' : 'AA')
  expect(await refused(wrong)).toEqual([400, 'invalid_grant'])
  expect(await works(await next(first.refresh_token))).toBe(true)
})

it('revoking an agent during concurrent refreshes leaves no token that works', async () => {
  const { body } = await service.call<{ agents: { id: string; kind: string }[] }>('GET', '/v1/agents', {
    key: team.key,
  })
  const id = body.agents.find(({ kind }) => kind === 'oauth')?.id ?? ''
  const refreshing = Array.from({ length: 20 }, () => refresh(service, client, first.refresh_token))
  const by = { cookie, headers: { origin: service.baseUrl } }
  expect((await service.call('DELETE', `/v1/agents/${id}`, by)).status).toBe(200)
  for (const { status, body: tokens } of await Promise.all(refreshing)) {
    expect([200, 400]).toContain(status)
    if (status === 200) expect(await works(tokens)).toBe(false)
  }
})

it('the twenty-first sign-in of a client ends the one unused for longest', async () => {
  for (let times = 0; times < 20; times++) {
    service.clock.advance(1)
    await connect(service, cookie, { client })
  }
  const families = await familyRows()
  expect(families.filter(({ revoked_at: at }) => at === null)).toHaveLength(20)
  expect(await works(first)).toBe(false)
})

describe('an expired authorization', () => {
  it('is deleted, and a valid one is kept', async () => {
    const second = await next(first.refresh_token)
    service.clock.advance(2 * DAY)
    await forgetAuthorizations(service.app)
    const third = await next(second.refresh_token)
    expect(await works(third)).toBe(true)
    service.clock.advance(32 * DAY)
    await forgetAuthorizations(service.app)
    expect(await familyRows()).toEqual([])
    expect(await refused(third.refresh_token)).toEqual([401, 'invalid_client'])
    const clients = service.app.db.selectFrom('oauth_clients').select('id').where('id', '=', client.id)
    expect(await clients.execute()).toEqual([])
  })
})

it('the database and the log have only hashes of tokens', async () => {
  const second = await next(first.refresh_token)
  await works(second)
  const kept = await everythingKept(service)
  for (const token of [first.access_token, first.refresh_token, second.access_token, second.refresh_token]) {
    for (const form of formsOf(token)) expect(kept.includes(form)).toBe(false)
  }
})
