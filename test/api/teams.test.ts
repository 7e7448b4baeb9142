// Teams over HTTP (spec 2.10, 4.1, 5.6, 7.4): created, changed and deleted by people, with every refusal.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AuditList } from '../../src/contract/audit.ts'
import type { Me } from '../../src/contract/me.ts'
import type { Team, TeamAnswer } from '../../src/contract/team.ts'
import {
  makeKey,
  makeMember,
  makeSession,
  makeSharedTeam,
  makeTeam,
  makeUnit,
  type TestMember,
} from '../support/make.ts'
import { type By, refusal, sendBy } from '../support/people.ts'
import { type Answer, type Service, startService } from '../support/service.ts'

let service: Service
let id: string
let owner: TestMember

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => await service.close())
beforeEach(async () => {
  ;({ id, owner } = await makeSharedTeam(service))
})

const send = async <T = TeamAnswer>(method: string, path: string, by: By, body?: unknown) =>
  await sendBy<T>(service, method, path, by, body)
const create = async (body: unknown, by: By = owner) => await send('POST', '/v1/teams', by, body)
const change = async (body: unknown, by: By = owner) => await send('PATCH', `/v1/teams/${id}`, by, body)
const remove = async (by: By = owner, team = id) => await send('DELETE', `/v1/teams/${team}`, by)
const me = async (by: By) => (await send<Me>('GET', '/v1/me', by)).body
const personal = async (by: By): Promise<Team> => {
  const team = (await me(by)).teams.find((each) => each.personal)
  if (!team) throw new Error('an account has no personal team')
  return team
}
const setPlan = async (teamId: string, plan: 'hobby' | 'pro' | 'team') =>
  await service.app.db.updateTable('teams').set({ plan }).where('id', '=', teamId).execute()

describe('POST /v1/teams', () => {
  it('creates the requested team, owned by the caller and on their plan', async () => {
    const { status, body } = await create({ name: 'Ümlaut & Co', region: 'virginia', currency: 'usd' })
    expect([status, body]).toEqual([
      201,
      {
        team: {
          id: expect.stringMatching(/^team_/),
          slug: expect.stringMatching(/^u-mlaut-co-[0-9a-f]{12}$/),
          name: 'Ümlaut & Co',
          personal: false,
          plan: 'team',
          region: 'virginia',
          currency: 'usd',
          role: 'owner',
          creditBalanceCents: expect.any(Number),
          egress: { mode: 'open', allow: [], siblings: 'team' },
          paysAsItGoes: false,
        },
      },
    ])
    expect((await me(owner)).teams).toContainEqual(body.team)
  })

  it('defaults to Paris and euros', async () => {
    expect((await create({ name: 'Plain' })).body.team).toMatchObject({ region: 'paris', currency: 'eur' })
  })

  it('creates a team that pays as it goes for an operator of the server', async () => {
    const { db } = service.app
    await db.updateTable('users').set({ admin: true }).where('id', '=', owner.userId).execute()
    expect((await create({ name: 'Ours' })).body.team.paysAsItGoes).toBe(true)
  })

  it('needs the Pro plan in any team that the caller owns', async () => {
    await setPlan((await personal(owner)).id, 'hobby')
    // The team of beforeEach is still on plan `team`.
    expect((await create({ name: 'Allowed' })).status).toBe(201)
    const member = await makeMember(service, id, 'admin')
    await setPlan((await personal(member)).id, 'hobby')
    const refused = await create({ name: 'Refused' }, { ...member, headers: { 'x-berth-team': id } })
    expect(refusal(refused)).toEqual([403, 'forbidden'])
  })

  it('creates a team with room for others for an operator of the server, on whatever plan their own is', async () => {
    const person = await makeTeam(service)
    await setPlan(person.teamId, 'hobby')
    const by = { cookie: await makeSession(service, person) }
    const refused = await create({ name: 'Refused' }, by)
    expect(refusal(refused)).toEqual([403, 'forbidden'])
    expect(JSON.stringify(refused.body)).toContain('npm run team')
    await service.app.db.updateTable('users').set({ admin: true }).where('id', '=', person.userId).execute()
    const made = await create({ name: 'Ours' }, by)
    expect(made.body.team).toMatchObject({ personal: false, plan: 'team', role: 'owner' })
    const invited = await send('POST', `/v1/teams/${made.body.team.id}/invites`, by, {
      email: 'a@example.test',
    })
    expect(invited.status).toBe(201)
  })

  it('creates as many teams as the plan allows, also with concurrent requests', async () => {
    const person = await makeTeam(service)
    await setPlan(person.teamId, 'pro')
    const by = { cookie: await makeSession(service, person) }
    const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => create({ name: `Team ${i}` }, by)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(5)
    const refused = answers.find(({ status }) => status !== 201)
    expect(refused).toMatchObject({
      status: 402,
      body: { error: { code: 'quota_exceeded', details: { field: 'teams', used: 5, max: 5 } } },
    })
  })

  it('returns the same team for a repeated Idempotency-Key', async () => {
    const by = { ...owner, headers: { 'idempotency-key': 'once' } }
    const [first, second] = [await create({ name: 'Once' }, by), await create({ name: 'Once' }, by)]
    expect(second.body).toEqual(first.body)
    expect((await me(owner)).teams.filter(({ name }) => name === 'Once')).toHaveLength(1)
  })

  it.each([
    {},
    { name: 'x' },
    { name: 'x'.repeat(61) },
    { name: ' padded ' },
    { name: 'two\nlines' },
    { name: 'turned \u202e around' },
    { name: 'Good', region: 'mars' },
    { name: 'Good', currency: 'btc' },
    { name: 'Good', plan: 'team' },
    { name: 'Good', personal: true },
    { name: 'Good', creditBalanceCents: 1 },
  ])('refuses the body %j', async (body) => {
    expect(refusal(await create(body))).toEqual([400, 'validation'])
  })

  it('is refused to a key', async () => {
    const { key } = await makeTeam(service)
    expect(refusal(await create({ name: 'By an agent' }, { key }))).toEqual([403, 'forbidden'])
  })
})

describe('PATCH /v1/teams/{id}', () => {
  it('changes only the named fields', async () => {
    const { status, body } = await change({ name: 'Renamed', region: 'singapore' })
    expect(status).toBe(200)
    expect(body.team).toMatchObject({ id, name: 'Renamed', region: 'singapore', currency: 'eur' })
    expect((await change({})).body).toEqual(body)
    expect((await change({ currency: 'usd' })).body.team).toEqual({ ...body.team, currency: 'usd' })
    expect((await me(owner)).teams).toContainEqual({ ...body.team, currency: 'usd' })
  })

  it.each([
    ['admin', 200],
    ['member', 403],
  ] as const)('by an %s returns %d', async (role, status) => {
    const answer = await change({ name: 'Theirs' }, await makeMember(service, id, role))
    expect(answer.status).toBe(status)
    if (status === 200) expect(answer.body.team.role).toBe(role)
  })

  it.each([{ plan: 'team' }, { paysAsItGoes: true }, { name: '' }, { region: null }, { role: 'owner' }])(
    'refuses the body %j',
    async (body) => {
      expect(refusal(await change(body))).toEqual([400, 'validation'])
    },
  )

  it('changes a personal team, which cannot be deleted', async () => {
    const { id: own } = await personal(owner)
    const renamed = await send('PATCH', `/v1/teams/${own}`, owner, { name: 'Mine' })
    expect(renamed).toMatchObject({ status: 200, body: { team: { name: 'Mine', personal: true } } })
    expect(refusal(await remove(owner, own))).toEqual([403, 'forbidden'])
  })
})

describe('DELETE /v1/teams/{id}', () => {
  it('ends the team for all members, with its keys, invitations and names', async () => {
    const member = await makeMember(service, id, 'member')
    const key = await makeKey(service, { teamId: id, userId: owner.userId })
    const unit = await makeUnit(service, { key: key.secret })
    await service.call('DELETE', `/v1/units/${unit.id}`, { key: key.secret })
    await send('POST', '/v1/stacks', { ...owner, headers: { 'x-berth-team': id } }, { name: 'left' })
    await send('POST', `/v1/teams/${id}/invites`, owner, { email: 'late@example.test' })
    const [mail] = await service.mailTo('late@example.test')
    const token = /invites\/(\S+)/.exec(mail?.text ?? '')?.[1] ?? ''
    expect((await service.call('GET', `/v1/invites/${token}`)).status).toBe(200)

    expect(await remove()).toMatchObject({ status: 200, body: { ok: true } })
    expect((await service.call('GET', `/v1/units/${unit.id}`, { key: key.secret })).status).toBe(401)
    expect((await service.call('GET', `/v1/invites/${token}`)).status).toBe(404)
    for (const person of [owner, member]) {
      expect((await me(person)).teams.map((team) => team.id)).not.toContain(id)
      const named = await send('GET', '/v1/units', { ...person, headers: { 'x-berth-team': id } })
      expect(named.status).toBe(403)
      // Without the header they act in a team that they still have.
      expect((await send('GET', '/v1/units', person)).body).toMatchObject({ units: [] })
    }
    expect(refusal(await remove())).toEqual([404, 'not_found'])
    expect(refusal(await change({ name: 'Back' }))).toEqual([404, 'not_found'])
  })

  it('keeps the audit log and the costs of the team', async () => {
    const key = await makeKey(service, { teamId: id, userId: owner.userId })
    const unit = await makeUnit(service, { key: key.secret })
    await service.call('DELETE', `/v1/units/${unit.id}`, { key: key.secret })
    await remove()
    const { db } = service.app
    const rows = await db
      .selectFrom('audit')
      .select('action')
      .where('team_id', '=', id)
      .orderBy('id')
      .execute()
    expect(rows.map(({ action }) => action)).toEqual(['unit.create', 'unit.destroy', 'team.delete'])
    const runs = await db.selectFrom('meters').select('team_id').where('unit_id', '=', unit.id).execute()
    expect(runs).toEqual([{ team_id: id }])
  })

  it.each(['running', 'stopped', 'sleeping'] as const)(
    'is refused while a unit of the team is %s',
    async (state) => {
      const key = await makeKey(service, { teamId: id, userId: owner.userId })
      const by = { key: key.secret }
      const unit = await makeUnit(service, by)
      if (state === 'stopped') await service.call('POST', `/v1/units/${unit.id}/stop`, by)
      if (state === 'sleeping')
        await service.call('POST', `/v1/units/${unit.id}/sleep`, { ...by, body: { sleep: '1m', now: true } })
      await expect
        .poll(async () => (await service.call('GET', `/v1/units/${unit.id}`, by)).body)
        .toMatchObject({ state })
      const refused = await remove()
      expect(refused).toMatchObject({
        status: 409,
        body: { error: { code: 'invalid_state', details: { units: 1 } } },
      })
      await service.call('DELETE', `/v1/units/${unit.id}`, by)
      expect((await remove()).status).toBe(200)
    },
  )

  it.each([
    ['a unit', '/v1/units', { spec: { name: 'late', image: 'node:22' } }],
    ['a stack', '/v1/stacks', { name: 'late' }],
    ['a key', '/v1/keys', { name: 'late' }],
  ])(
    'a deletion that gets the lock before the creation of %s refuses it, though its caller was authenticated',
    async (_what, path, body) => {
      const by = { ...owner, headers: { 'x-berth-team': id } }
      const answers = await inTurn([() => remove(), () => send('POST', path, by, body)])
      expect(answers.map(refusal)).toEqual([
        [200, undefined],
        [403, 'forbidden'],
      ])
      const { db } = service.app
      for (const table of ['units', 'stacks', 'credentials'] as const) {
        expect(await db.selectFrom(table).select('id').where('team_id', '=', id).execute()).toEqual([])
      }
    },
  )

  it('refuses to delete a team whose lock a create got first', async () => {
    const by = { ...owner, headers: { 'x-berth-team': id } }
    const spec = { name: 'early', image: 'node:22' }
    const answers = await inTurn([() => send('POST', '/v1/units', by, { spec }), () => remove()])
    expect(answers.map(({ status }) => status)).toEqual([201, 409])
  })

  it.each([
    ['admin', 403],
    ['member', 403],
  ] as const)('by an %s returns %d', async (role, status) => {
    expect((await remove(await makeMember(service, id, role))).status).toBe(status)
  })
})

describe('a team of other people', () => {
  it('returns 403, an unknown one 404, and neither is changed', async () => {
    const stranger = { cookie: await makeSession(service, await makeTeam(service)) }
    expect(refusal(await change({ name: 'Taken' }, stranger))).toEqual([403, 'forbidden'])
    expect(refusal(await remove(stranger))).toEqual([403, 'forbidden'])
    const random = `team_${'0'.repeat(32)}`
    expect(refusal(await remove(stranger, random))).toEqual([404, 'not_found'])
    expect((await me(owner)).teams.find((team) => team.id === id)).toMatchObject({ name: 'Shared' })
  })
})

describe('a call about a team', () => {
  it('is audited in that team, not in the one that the session acts in', async () => {
    await send('GET', '/v1/units', { ...owner, headers: { 'x-berth-team': (await personal(owner)).id } })
    await change({ name: 'Written down' })
    const log = async (team: string) =>
      (await send<AuditList>('GET', '/v1/audit', { ...owner, headers: { 'x-berth-team': team } })).body.events
    expect(await log(id)).toMatchObject([
      { action: 'team.change', target: id, input: { name: 'Written down' }, status: 200 },
    ])
    const elsewhere = await log((await personal(owner)).id)
    expect(elsewhere.map(({ action }) => action)).not.toContain('team.change')
  })

  it('does not change the team that the session acts in', async () => {
    const own = (await personal(owner)).id
    await send('GET', '/v1/units', { ...owner, headers: { 'x-berth-team': own } })
    await change({ name: 'Elsewhere' })
    expect((await me(owner)).currentTeamId).toBe(own)
  })
})

describe('x-berth-team', () => {
  it('selects the team, which the session remembers and /v1/me shows', async () => {
    const own = (await personal(owner)).id
    expect((await me(owner)).currentTeamId).toBe(own)
    await send('GET', '/v1/units', { ...owner, headers: { 'x-berth-team': id } })
    expect((await me(owner)).currentTeamId).toBe(id)
    const another = { cookie: await makeSession(service, owner) }
    expect((await me(another)).currentTeamId).toBe(own)
  })

  it('of a deleted team leads back to a team that the person still has', async () => {
    await send('GET', '/v1/units', { ...owner, headers: { 'x-berth-team': id } })
    await remove()
    expect((await me(owner)).currentTeamId).toBe((await personal(owner)).id)
  })
})

/** Makes calls that wait for the lock of the team in this order, once all of them are authenticated. */
async function inTurn(calls: (() => Promise<Answer>)[]): Promise<Answer[]> {
  const { app } = service
  const { teamLocks } = app
  let waiting = 0
  app.teamLocks = (teamId, work) => {
    waiting += 1
    return teamLocks(teamId, work)
  }
  const answers: Promise<Answer>[] = []
  await teamLocks(id, async () => {
    for (const call of calls) {
      answers.push(call())
      await expect.poll(() => waiting).toBe(answers.length)
    }
  })
  app.teamLocks = teamLocks
  return await Promise.all(answers)
}
