// The signed-in person (spec 2.10, 4.1).

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Me } from '../../src/contract/me.ts'
import { makeSession, makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let cookie: string

beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  cookie = await makeSession(service, team)
})
afterAll(async () => await service.close())

const me = async (headers: Record<string, string> = {}) => {
  const { status, body } = await service.call<Me>('GET', '/v1/me', { cookie, headers })
  expect(status).toBe(200)
  return body
}
const patch = async (body: unknown) =>
  await service.call('PATCH', '/v1/me', { cookie, body, headers: { origin: service.baseUrl } })

async function joinTeamOf(other: TestTeam): Promise<void> {
  const joined_at = service.app.clock.now()
  const row = { team_id: other.teamId, user_id: team.userId, role: 'member' as const, joined_at }
  await service.app.db.insertInto('memberships').values(row).execute()
}

describe('GET /v1/me', () => {
  it('returns the person, the teams, and what the server offers', async () => {
    expect(await me()).toEqual({
      user: { id: team.userId, email: team.email, name: 'Person', emailVerified: true, admin: false },
      teams: [
        {
          id: team.teamId,
          slug: team.teamId.replace('_', '-'),
          name: "Person's team",
          personal: true,
          plan: 'team',
          region: 'paris',
          currency: 'eur',
          role: 'owner',
          creditBalanceCents: expect.any(Number),
          egress: { mode: 'open', allow: [], siblings: 'team' },
          paysAsItGoes: true,
        },
      ],
      currentTeamId: team.teamId,
      regions: [
        expect.objectContaining({ id: 'paris', eu: true }),
        expect.objectContaining({ id: 'virginia', eu: false }),
        expect.objectContaining({ id: 'singapore', eu: false }),
      ],
      freeCreditsOnVerifyCents: 500,
      apiUrl: 'http://berth.test/v1',
      support: { form: true, email: null },
      payments: false,
      maxSleep: 'never',
    })
  })

  it('returns every team of the person with their role, and remembers the current team', async () => {
    const other = await makeTeam(service)
    await joinTeamOf(other)
    const { teams, currentTeamId } = await me()
    expect(teams.map(({ id, role }) => ({ id, role }))).toEqual([
      { id: team.teamId, role: 'owner' },
      { id: other.teamId, role: 'member' },
    ])
    expect(currentTeamId).toBe(team.teamId)
    expect((await me({ 'x-berth-team': other.teamId })).currentTeamId).toBe(other.teamId)
    expect((await me()).currentTeamId).toBe(other.teamId)
    expect((await me({ 'x-berth-team': team.teamId })).currentTeamId).toBe(team.teamId)
  })

  it('returns the longest sleep that the plan allows, which is accepted', async () => {
    const newcomer = await makeTeam(service)
    const plan = async (name: 'hobby' | 'pro') => {
      await service.app.db
        .updateTable('teams')
        .set({ plan: name })
        .where('id', '=', newcomer.teamId)
        .execute()
      const session = await makeSession(service, newcomer)
      return (await service.call<Me>('GET', '/v1/me', { cookie: session })).body.maxSleep
    }
    expect(await plan('pro')).toBe('never')
    const longest = await plan('hobby')
    expect(longest).toMatch(/^[1-9][0-9]{0,4}[mhd]$/)
    const spec = { name: 'sleeper', image: 'node:22', sleep: longest }
    const made = await service.call('POST', '/v1/units', { key: newcomer.key, body: { spec } })
    expect(made).toMatchObject({ status: 201, body: { units: [{ sleep: longest }] } })
  })

  // Spec 5.3.
  it('accepts a session only: a key gets 403, and no credential 401', async () => {
    expect((await service.call('GET', '/v1/me', { key: team.key })).status).toBe(403)
    expect((await service.call('GET', '/v1/me')).status).toBe(401)
    expect((await service.call('PATCH', '/v1/me', { key: team.key, body: { name: 'x' } })).status).toBe(403)
  })
})

describe('PATCH /v1/me', () => {
  it('changes the name and nothing else', async () => {
    expect(await patch({ name: 'Ann Ånn' })).toMatchObject({
      status: 200,
      body: { id: team.userId, name: 'Ann Ånn' },
    })
    expect((await me()).user.name).toBe('Ann Ånn')
    for (const more of [
      { admin: true },
      { email: 'eve@example.test' },
      { emailVerified: false },
      { id: 'x' },
    ]) {
      expect((await patch({ name: 'Eve', ...more })).status).toBe(400)
    }
    expect((await me()).user).toMatchObject({ name: 'Ann Ånn', email: team.email, admin: false })
  })

  const hidden = [
    '\0',
    '\n',
    '\r',
    '\u2028',
    '\u202e',
    '\u2066',
    '\u200b',
    '\u00ad',
    '\u3164',
    '\u2800',
    '\u001b',
  ]
  it.each([
    {},
    { name: '' },
    { name: 'x'.repeat(81) },
    { name: 7 },
    { name: null },
    { name: ' ' },
    { name: ' x' },
    ...hidden.map((character) => ({ name: `a${character}b` })),
  ])('refuses the body %j', async (body) => {
    expect(await patch(body)).toMatchObject({ status: 400, body: { error: { code: 'validation' } } })
  })

  it('accepts a name of 1 and of 80 characters', async () => {
    for (const name of ['x', 'x'.repeat(80)]) expect((await patch({ name })).status).toBe(200)
  })
})

it('GET /v1/auth/providers lists the configured providers without authentication', async () => {
  const none = await service.call('GET', '/v1/auth/providers')
  expect(none).toMatchObject({ status: 200, body: { providers: [] } })
  const client = { clientId: 'x', clientSecret: 'y', url: 'https://x.test', apiUrl: 'https://x.test' }
  for (const [signIn, expected] of [
    [{ github: client, google: null }, ['github']],
    [{ github: null, google: client }, ['google']],
    [{ github: client, google: client }, ['github', 'google']],
  ] as const) {
    const other = await startService({ signIn, loops: false })
    try {
      const { body } = await other.call('GET', '/v1/auth/providers')
      expect(body).toEqual({ providers: expected })
    } finally {
      await other.close()
    }
  }
})
