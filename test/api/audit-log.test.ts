// GET /v1/audit (spec 2.12, 4.5): the calls of the caller’s team, newest first, by key and by agent.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AuditList } from '../../src/contract/audit.ts'
import { newId } from '../../src/lib/ids.ts'
import { type AuditRow, insertAuditRows } from '../../src/store/audit.ts'
import { makeKey, makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => await service.close())
beforeEach(async () => {
  team = await makeTeam(service)
})

async function read(
  query = '',
  by: { key?: string; cookie?: string } = { key: team.key },
): Promise<AuditList> {
  const { status, body } = await service.call<AuditList>('GET', `/v1/audit${query}`, by)
  expect(status, JSON.stringify(body)).toBe(200)
  return body
}

function row(given: Partial<AuditRow>): AuditRow {
  return {
    id: newId('audit'),
    teamId: team.teamId,
    credentialKind: 'key',
    credentialId: team.keyId,
    credentialName: 'test key',
    userId: team.userId,
    action: 'unit.get',
    target: null,
    input: null,
    requestId: 'planted',
    via: 'mcp',
    agentName: null,
    agentVersion: null,
    userAgent: null,
    startedAt: service.app.clock.now(),
    outcome: null,
    ...given,
  }
}

describe('the audit log', () => {
  it('names units and stacks, also those that are gone, and nothing of another team', async () => {
    const unit = await makeUnit(service, team, { name: 'short-lived' })
    const other = await makeUnit(service, await makeTeam(service), { name: 'of-others' })
    await service.call('DELETE', `/v1/units/${unit.id}`, { key: team.key })
    await service.call('DELETE', `/v1/stacks/${unit.stackId}`, { key: team.key })
    await service.call('GET', `/v1/units/${other.id}`, { key: team.key })
    const { events } = await read()
    expect(events.map(({ action, targetName }) => [action, targetName])).toEqual([
      ['unit.get', null],
      ['stack.destroy', expect.any(String)],
      ['unit.destroy', 'short-lived'],
      ['unit.create', 'short-lived'],
    ])
  })

  it('records each call with its caller and outcome', async () => {
    const unit = await makeUnit(service, team)
    const exec = { cmd: ['psql', '--password=hidden'], stdin: 'hidden' }
    await service.call('POST', `/v1/units/${unit.id}/exec`, { key: team.key, body: exec })
    await service.call('GET', '/v1/units/nobody', { key: team.key, headers: { 'user-agent': 'curl/8' } })
    const { events, next } = await read()
    expect(events.map(({ action, status }) => [action, status])).toEqual([
      ['unit.get', 404],
      ['unit.exec', 200],
      ['unit.create', 201],
    ])
    expect(next).toBeNull()
    const [refused, ran, made] = events
    expect(refused).toMatchObject({
      errorCode: 'not_found',
      target: 'nobody',
      userAgent: 'curl/8',
      via: 'api',
    })
    expect(made).toMatchObject({ target: unit.id, errorCode: null, costDeltaCents: expect.any(Number) })
    expect(ran).toMatchObject({
      credential: { id: team.keyId, kind: 'key', name: 'test key' },
      userId: team.userId,
      target: unit.id,
      durationMs: expect.any(Number),
    })
    // To the microsecond, without noise of floating point.
    expect(String(ran?.durationMs)).toMatch(/^\d+(\.\d{1,3})?$/)
    expect(JSON.stringify(events)).not.toContain('hidden')
  })

  it('lists its own reads from the next read on', async () => {
    await read()
    expect((await read()).events.map(({ action }) => action)).toEqual(['audit.list'])
  })

  it('paginates without duplicates or gaps while new calls arrive', async () => {
    for (let asked = 0; asked < 7; asked += 1) await service.call('GET', '/v1/units', { key: team.key })
    let page = await read('?limit=3')
    const events = page.events
    while (page.next !== null) {
      page = await read(`?limit=3&cursor=${page.next}`)
      events.push(...page.events)
    }
    expect(events.map(({ action }) => action)).toEqual(Array<string>(7).fill('unit.list'))
    expect(new Set(events.map(({ id }) => id)).size).toBe(7)
    expect(events.map(({ id }) => id)).toEqual(
      events
        .map(({ id }) => id)
        .toSorted()
        .toReversed(),
    )
  })

  it('can be filtered by key, by agent and by both', async () => {
    const other = await makeKey(service, { teamId: team.teamId, userId: team.userId })
    await insertAuditRows(service.app.db, [
      row({ agentName: 'claude', target: 'one' }),
      row({ agentName: 'claude', target: 'two', credentialId: other.id }),
      row({ agentName: 'another', target: 'three' }),
    ])
    const targets = async (query: string) => (await read(query)).events.map(({ target }) => target)
    expect(await targets('?agent=claude')).toEqual(['two', 'one'])
    expect(await targets(`?key=${other.id}`)).toEqual(['two'])
    expect(await targets(`?agent=claude&key=${team.keyId}`)).toEqual(['one'])
    expect(await targets('?key=nobody')).toEqual([])
  })

  it('shows a call whose server died without status or duration', async () => {
    await insertAuditRows(service.app.db, [row({ action: 'unit.create' })])
    expect((await read()).events).toMatchObject([{ status: null, durationMs: null, errorCode: null }])
  })

  it('shows one team only, to people and keys alike', async () => {
    const stranger = await makeTeam(service)
    await service.call('GET', '/v1/units', { key: stranger.key })
    const cookie = await makeSession(service, team)
    const own = await read('', { cookie })
    expect(own.events.every(({ userId }) => userId === team.userId)).toBe(true)
    const theirs = await read(`?key=${stranger.keyId}`)
    expect(theirs.events).toEqual([])
  })

  it.each(['?cursor=nonsense', '?limit=0', '?limit=501', '?agent=%00', '?since=yesterday'])(
    'refuses the query %s',
    async (query) => {
      const { status, body } = await service.call('GET', `/v1/audit${query}`, { key: team.key })
      expect([status, body]).toMatchObject([400, { error: { code: 'validation' } }])
    },
  )
})
