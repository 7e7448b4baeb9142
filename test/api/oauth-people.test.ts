// Tokens end with the person who connected the client, and with the agent that the connection made: at once for the
// next call, within five seconds for open streams (reliability S5 and S8).

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AgentList } from '../../src/contract/agent.ts'
import { HOUR, SECOND } from '../../src/lib/clock.ts'
import { readEvents } from '../support/events.ts'
import {
  makeMember,
  makeSession,
  makeSharedTeam,
  makeTeam,
  makeUnit,
  type TestMember,
} from '../support/make.ts'
import {
  agree,
  authorizePath,
  connect,
  formOf,
  newPkce,
  openConsent,
  redeem,
  refresh,
  registerClient,
  signedInBrowser,
} from '../support/oauth.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service

beforeAll(async () => {
  service = await startService({ loops: false })
})
afterAll(async () => await service.close())

const own = () => ({ origin: service.baseUrl })
const works = async (key: string) => (await service.call('GET', '/v1/units', { key })).status === 200

type Place = { teamId: string; owner: TestMember; person: TestMember }

async function makePlace(role: 'owner' | 'admin' | 'member' = 'member'): Promise<Place> {
  const { id: teamId, owner } = await makeSharedTeam(service)
  return { teamId, owner, person: await makeMember(service, teamId, role) }
}

const by = ({ cookie }: TestMember, teamId: string) => ({
  cookie,
  headers: { ...own(), 'x-berth-team': teamId },
})
const leave = async ({ teamId, person }: Place) =>
  await service.call('DELETE', `/v1/teams/${teamId}/members/${person.userId}`, by(person, teamId))
const changeRole = async ({ teamId, owner, person }: Place, role: string) =>
  await service.call('PATCH', `/v1/teams/${teamId}/members/${person.userId}`, {
    ...by(owner, teamId),
    body: { role },
  })

/** Names the team in the form, as the page of that team does. */
const inTeam = ({ teamId }: Place) => ({ changes: { team: teamId } })

describe('the tokens of a connected client end', () => {
  it('when the person leaves the team or is removed from it', async () => {
    for (const go of [
      leave,
      async ({ teamId, owner, person }: Place) =>
        await service.call('DELETE', `/v1/teams/${teamId}/members/${person.userId}`, by(owner, teamId)),
    ]) {
      const place = await makePlace()
      const { client, tokens } = await connect(service, place.person.cookie, inTeam(place))
      expect(await works(tokens.access_token)).toBe(true)
      expect((await go(place)).status).toBe(200)
      expect(await works(tokens.access_token)).toBe(false)
      const again = await refresh(service, client, tokens.refresh_token)
      expect(again).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    }
  })

  it('when the membership is deleted in any other way', async () => {
    const place = await makePlace()
    const { client, tokens } = await connect(service, place.person.cookie, inTeam(place))
    await service.app.db.deleteFrom('memberships').where('user_id', '=', place.person.userId).execute()
    expect(await works(tokens.access_token)).toBe(false)
    expect((await refresh(service, client, tokens.refresh_token)).status).toBe(400)
  })

  it('when the team is deleted', async () => {
    const { id, owner } = await makeSharedTeam(service)
    const { client, tokens } = await connect(service, owner.cookie, { changes: { team: id } })
    const gone = await service.call('DELETE', `/v1/teams/${id}`, by(owner, id))
    expect(gone.status).toBe(200)
    expect(await works(tokens.access_token)).toBe(false)
    expect((await refresh(service, client, tokens.refresh_token)).status).toBe(400)
  })

  it('when the person gets a lesser role, and not when they get a higher one', async () => {
    const place = await makePlace('member')
    const { tokens } = await connect(service, place.person.cookie, inTeam(place))
    expect((await changeRole(place, 'admin')).status).toBe(200)
    expect(await works(tokens.access_token)).toBe(true)
    expect((await changeRole(place, 'member')).status).toBe(200)
    expect(await works(tokens.access_token)).toBe(false)
  })

  it('when the policy expires, which a change of the policy undoes', async () => {
    const team = await makeTeam(service)
    const cookie = await makeSession(service, team)
    const until = new Date(service.clock.now().getTime() + HOUR / 2).toISOString()
    const changes = { expiresAt: until.slice(0, 19) }
    const { client, tokens } = await connect(service, cookie, { changes })
    service.clock.advance(HOUR / 2)
    expect(await works(tokens.access_token)).toBe(false)
    expect((await refresh(service, client, tokens.refresh_token)).status).toBe(400)
    const { body } = await service.call<AgentList>('GET', '/v1/agents', { key: team.key })
    const id = body.agents.find(({ kind }) => kind === 'oauth')?.id ?? ''
    const sent = { cookie, headers: own(), body: { policy: { expiresAt: null } } }
    expect((await service.call('PATCH', `/v1/agents/${id}`, sent)).status).toBe(200)
    expect(await works(tokens.access_token)).toBe(true)
  })
})

describe('a person who leaves the team during a connection', () => {
  it('cannot connect a client by a page that was open', async () => {
    const place = await makePlace()
    const browser = signedInBrowser(service, place.person.cookie)
    const client = await registerClient(service)
    const consent = await openConsent(browser, authorizePath(client, newPkce().challenge))
    const form = formOf(await (await browser.get(`${consent}&team=${place.teamId}`)).text())
    form.set('decision', 'connect')
    await leave(place)
    const answer = await browser.post('/oauth/consent', form)
    expect(answer.status).toBe(403)
    expect(await answer.text()).toContain('not a member')
  })

  it('leaves an authorization code that cannot be redeemed', async () => {
    const place = await makePlace()
    const client = await registerClient(service)
    const agreed = await agree(signedInBrowser(service, place.person.cookie), client, inTeam(place))
    await leave(place)
    const answer = await redeem(service, client, agreed)
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    const codes = service.app.db.selectFrom('oauth_codes').selectAll().where('client_id', '=', client.id)
    expect((await codes.executeTakeFirst())?.used_at).toBeNull()
  })

  it('either connects or leaves when both happen at once, and no live credential remains', async () => {
    for (let times = 0; times < 5; times++) {
      const place = await makePlace()
      const browser = signedInBrowser(service, place.person.cookie)
      const client = await registerClient(service)
      const pkce = newPkce()
      const consent = await openConsent(browser, authorizePath(client, pkce.challenge))
      const form = formOf(await (await browser.get(`${consent}&team=${place.teamId}`)).text())
      form.set('decision', 'connect')
      const [left, decided] = await Promise.all([leave(place), browser.post('/oauth/consent', form)])
      expect([left.status, [200, 403].includes(decided.status)]).toEqual([200, true])
      const live = service.app.db
        .selectFrom('credentials')
        .select('id')
        .where('team_id', '=', place.teamId)
        .where('kind', '=', 'oauth')
        .where('revoked_at', 'is', null)
      expect(await live.execute()).toEqual([])
    }
  })
})

it('an open stream ends within seconds of its agent, and not with its access token', async () => {
  const team = await makeTeam(service)
  const cookie = await makeSession(service, team)
  const { tokens } = await connect(service, cookie)
  const { id } = await makeUnit(service, team, { cmd: ['sleep', 'infinity'], sleep: 'never' })
  const answer = await service.fetch('GET', `/v1/units/${id}/logs?follow=true`, {
    key: tokens.access_token,
    headers: { accept: 'text/event-stream' },
  })
  expect(answer.status).toBe(200)
  const events = readEvents(answer)[Symbol.asyncIterator]()
  service.clock.advance(HOUR + SECOND)
  expect(await works(tokens.access_token)).toBe(false)
  const stillOpen = service.app.db.selectFrom('audit').select('status').where('action', '=', 'unit.logs')
  expect((await stillOpen.execute()).filter(({ status }) => status === 401)).toEqual([])
  const { body } = await service.call<AgentList>('GET', '/v1/agents', { key: team.key })
  const agent = body.agents.find(({ kind }) => kind === 'oauth')?.id ?? ''
  await service.call('DELETE', `/v1/agents/${agent}`, { cookie, headers: own() })
  service.clock.advance(5 * SECOND)
  const ending = await events.next()
  expect(ending.value).toMatchObject({ event: 'error', data: { error: { code: 'unauthorized' } } })
  expect((await events.next()).done).toBe(true)
})
