// Members of a team over HTTP (spec 4.1, 5.6): their roles, and what ends with a membership (reliability S2, S26).

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Me } from '../../src/contract/me.ts'
import type { MemberList, MemberRemoved } from '../../src/contract/member.ts'
import type { KeyCreated } from '../../src/contract/agent.ts'
import { MINUTE, SECOND } from '../../src/lib/clock.ts'
import type { Role } from '../../src/store/teams.ts'
import { readEvents } from '../support/events.ts'
import {
  insertConnectedClient,
  makeKey,
  makeMember,
  makeSession,
  makeSharedTeam,
  makeTeam,
  makeUnit,
  type TestMember,
} from '../support/make.ts'
import { type By, refusal, sendBy } from '../support/people.ts'
import { type Service, startService } from '../support/service.ts'

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

const send = async <T>(method: string, path: string, by: By, body?: unknown) =>
  await sendBy<T>(service, method, path, by, body)
const list = async (by: By = owner) => (await send<MemberList>('GET', `/v1/teams/${id}/members`, by)).body
const roles = async () => Object.fromEntries((await list()).members.map(({ userId, role }) => [userId, role]))
const setRole = async (userId: string, role: unknown, by: By = owner) =>
  await send('PATCH', `/v1/teams/${id}/members/${userId}`, by, { role })
const remove = async (userId: string, by: By = owner) =>
  await send<MemberRemoved>('DELETE', `/v1/teams/${id}/members/${userId}`, by)
const join = async (role: Role) => await makeMember(service, id, role)

describe('GET /v1/teams/{id}/members', () => {
  it('lists every member in the order in which they joined', async () => {
    const [admin, member] = [await join('admin'), await join('member')]
    const { members, invites } = await list(member)
    expect(invites).toEqual([])
    expect(members.map(({ userId, email, role }) => [userId, email, role])).toEqual([
      [owner.userId, owner.email, 'owner'],
      [admin.userId, admin.email, 'admin'],
      [member.userId, member.email, 'member'],
    ])
  })
})

describe('the role of a member', () => {
  it('can be changed by owners only', async () => {
    const [admin, member] = [await join('admin'), await join('member')]
    for (const by of [admin, member]) {
      expect(refusal(await setRole(member.userId, 'admin', by))).toEqual([403, 'forbidden'])
      expect(refusal(await setRole(by.userId, 'owner', by))).toEqual([403, 'forbidden'])
    }
    expect(await setRole(member.userId, 'admin')).toMatchObject({ status: 200, body: { ok: true } })
    expect(await setRole(admin.userId, 'owner')).toMatchObject({ status: 200, body: { ok: true } })
    expect(await roles()).toEqual({
      [owner.userId]: 'owner',
      [admin.userId]: 'owner',
      [member.userId]: 'admin',
    })
    expect((await setRole(owner.userId, 'member', admin)).status).toBe(200)
    expect(refusal(await setRole(admin.userId, 'member', owner))).toEqual([403, 'forbidden'])
  })

  it('cannot be changed for the last owner, who cannot leave either', async () => {
    await join('admin')
    for (const role of ['admin', 'member']) {
      expect(refusal(await setRole(owner.userId, role))).toEqual([409, 'invalid_state'])
    }
    expect((await setRole(owner.userId, 'owner')).status).toBe(200)
    expect(refusal(await remove(owner.userId))).toEqual([409, 'invalid_state'])
    expect((await roles())[owner.userId]).toBe('owner')
  })

  it('is owner for at least one member, also when all owners demote each other concurrently', async () => {
    const second = await join('owner')
    const third = await join('owner')
    const all = [owner, second, third]
    const answers = await Promise.all(
      all.flatMap((by) => all.map(async ({ userId }) => await setRole(userId, 'member', by))),
    )
    for (const { status } of answers) expect([200, 403, 409]).toContain(status)
    const owners = await service.app.db
      .selectFrom('memberships')
      .select('user_id')
      .where('team_id', '=', id)
      .where('role', '=', 'owner')
      .execute()
    expect(owners).toHaveLength(1)
  })

  it('cannot be owner for a second member of a personal team', async () => {
    const person = await makeTeam(service)
    const by = { cookie: await makeSession(service, person) }
    const { userId } = await makeMember(service, person.teamId, 'member')
    const path = `/v1/teams/${person.teamId}/members/${userId}`
    expect(refusal(await send('PATCH', path, by, { role: 'owner' }))).toEqual([403, 'forbidden'])
    expect((await send('PATCH', path, by, { role: 'admin' })).status).toBe(200)
  })

  it.each([{}, { role: 'king' }, { role: 'admin', userId: 'user_x' }])(
    'cannot be set by the body %j',
    async (body) => {
      const { userId } = await join('member')
      const answer = await send('PATCH', `/v1/teams/${id}/members/${userId}`, owner, body)
      expect(refusal(answer)).toEqual([400, 'validation'])
    },
  )

  it('cannot be changed for a person outside the team, which returns 404', async () => {
    const stranger = await makeTeam(service)
    for (const userId of [stranger.userId, `user_${'0'.repeat(32)}`, 'nobody']) {
      expect(refusal(await setRole(userId, 'admin'))).toEqual([404, 'not_found'])
      expect(refusal(await remove(userId))).toEqual([404, 'not_found'])
    }
  })
})

describe('removing a member', () => {
  it.each([
    ['owner', 'owner', 200],
    ['owner', 'admin', 200],
    ['owner', 'member', 200],
    ['admin', 'owner', 403],
    ['admin', 'admin', 403],
    ['admin', 'member', 200],
    ['member', 'owner', 403],
    ['member', 'admin', 403],
    ['member', 'member', 403],
  ] as const)('by an %s of an %s returns %d', async (by, whom, status) => {
    const [remover, removed] = [await join(by), await join(whom)]
    expect((await remove(removed.userId, remover)).status).toBe(status)
    expect(removed.userId in (await roles())).toBe(status !== 200)
  })

  it.each(['owner', 'admin', 'member'] as const)(
    'is possible for an %s themselves, who leaves the team',
    async (role) => {
      const person = await join(role)
      expect(await remove(person.userId, person)).toMatchObject({ status: 200, body: { keysToReview: [] } })
      expect(await roles()).toEqual({ [owner.userId]: 'owner' })
    },
  )

  it('lists the live keys of the member, which keep working', async () => {
    const member = await join('member')
    const by = { ...member, headers: { 'x-berth-team': id } }
    const make = async (name: string, policy = {}) =>
      (await send<KeyCreated>('POST', '/v1/keys', by, { name, policy })).body
    const [kept, revoked] = [await make('kept'), await make('revoked')]
    await make('expired', { expiresAt: new Date(service.clock.now().getTime() + MINUTE).toISOString() })
    service.clock.advance(MINUTE)
    await send('POST', '/v1/keys', { ...owner, headers: { 'x-berth-team': id } }, { name: 'of another' })
    await send('DELETE', `/v1/keys/${revoked.key.id}`, by)
    const { body } = await remove(member.userId)
    const { id: keyId, name, prefix } = kept.key
    expect(body).toEqual({ ok: true, keysToReview: [{ id: keyId, name, prefix }] })
    expect((await send('GET', '/v1/units', { key: kept.secret })).status).toBe(200)
  })

  it('revokes the clients that the member connected, and no others', async () => {
    const member = await join('member')
    const theirs = await insertConnectedClient(service, { teamId: id, userId: member.userId })
    const others = await insertConnectedClient(service, { teamId: id, userId: owner.userId })
    await remove(member.userId)
    expect((await send('GET', '/v1/units', { key: theirs })).status).toBe(401)
    expect((await send('GET', '/v1/units', { key: others })).status).toBe(200)
  })

  it('revokes their invitations, and so does a demotion to member', async () => {
    const [removed, demoted] = [await join('admin'), await join('admin')]
    const invite = async (by: By, email: string) =>
      (await send('POST', `/v1/teams/${id}/invites`, by, { email })).status
    expect(await invite(removed, 'one@example.test')).toBe(201)
    expect(await invite(demoted, 'two@example.test')).toBe(201)
    expect(await invite(owner, 'three@example.test')).toBe(201)
    await remove(removed.userId)
    await setRole(demoted.userId, 'member')
    expect((await list()).invites.map(({ email }) => email)).toEqual(['three@example.test'])
    expect(await invite(demoted, 'two@example.test')).toBe(403)
  })

  it('takes effect from the next call on, for every session of the member', async () => {
    const member = await join('admin')
    const sessions = [member.cookie, await makeSession(service, member)]
    const units = async (cookie: string) =>
      (await send('GET', '/v1/units', { cookie, headers: { 'x-berth-team': id } })).status
    for (const cookie of sessions) expect(await units(cookie)).toBe(200)
    await remove(member.userId)
    for (const cookie of sessions) {
      expect(await units(cookie)).toBe(403)
      expect(refusal(await send('GET', `/v1/teams/${id}/members`, { cookie }))).toEqual([403, 'forbidden'])
      expect((await send('GET', '/v1/me', { cookie })).body).not.toMatchObject({ currentTeamId: id })
    }
  })

  it('ends their open streams within five seconds, also when their session acts in another team', async () => {
    const member = await join('member')
    const by = { cookie: member.cookie, headers: { 'x-berth-team': id } }
    const key = await makeKey(service, { teamId: id, userId: owner.userId })
    const unit = await makeUnit(service, { key: key.secret })
    const follow = async (who: By) =>
      await service.fetch('GET', `/v1/units/${unit.id}/logs?follow=true`, {
        ...who,
        headers: { accept: 'text/event-stream', ...who.headers },
      })
    // The second names no team: it acts in the one that the first has named.
    const streams = [await follow(by), await follow({ cookie: member.cookie })].map((each) =>
      readEvents(each),
    )
    const others = readEvents(await follow({ cookie: owner.cookie, headers: { 'x-berth-team': id } }))
    const own = (await send<Me>('GET', '/v1/me', by)).body.teams.find(({ personal }) => personal)
    await send('GET', '/v1/units', { ...by, headers: { 'x-berth-team': own?.id ?? '' } })
    await send('GET', '/v1/units', { ...owner, headers: { 'x-berth-team': own?.id ?? '' } })
    // The repeated check of the listeners does not change the team their session acts in.
    service.clock.advance(5 * SECOND)
    expect((await send<Me>('GET', '/v1/me', { cookie: member.cookie })).body.currentTeamId).toBe(own?.id)

    await remove(member.userId)
    service.clock.advance(5 * SECOND)
    for (const events of streams) {
      const ended = { event: 'error', data: { error: { code: 'forbidden' } } }
      expect((await events.next()).value).toMatchObject(ended)
      expect((await events.next()).done).toBe(true)
    }
    await service.call('POST', `/v1/units/${unit.id}/stop`, { key: key.secret })
    expect((await others.next()).value).toMatchObject({ event: 'end' })
  })
})
