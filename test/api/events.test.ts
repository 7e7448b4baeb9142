// GET /v1/events: changes in a team are sent to all who follow it, and to no one else.

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { AuditList } from '../../src/contract/audit.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { tellChanged } from '../../src/domain/transactions/changes.ts'
import { newId } from '../../src/lib/ids.ts'
import { SECOND } from '../../src/lib/clock.ts'
import { revokeCredential } from '../../src/store/credentials.ts'
import { readEvents } from '../support/events.ts'
import { makeKey, makeMember, makeSharedTeam, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

type Event = { event: string; id?: string; data: Record<string, unknown> }

let service: Service
let team: TestTeam
let left: AbortController

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => await service.close())
beforeEach(async () => {
  team = await makeTeam(service)
  left = new AbortController()
})
afterEach(() => left.abort())

const call = async <T>(method: string, path: string, body?: unknown) =>
  await service.call<T>(method, path, { key: team.key, ...(body === undefined ? {} : { body }) })

async function follow(lastId?: string, key = team.key, query = '') {
  const headers = {
    accept: 'text/event-stream',
    ...(lastId === undefined ? {} : { 'last-event-id': lastId }),
  }
  const response = await service.fetch('GET', `/v1/events${query}`, { key, headers, signal: left.signal })
  const events = readEvents(response)
  const next = async () => (await events.next()).value as Event
  /** Reads events up to and including the first that matches. */
  const until = async (isMeant: (event: Event) => boolean) => {
    const seen: Event[] = []
    for (;;) {
      const event = await next()
      expect(event).toBeDefined()
      seen.push(event)
      if (isMeant(event)) return seen
    }
  }
  return { next, until }
}

const ofUnit = (id: string, state: string) => (event: Event) =>
  event.event === 'unit' && event.data['id'] === id && event.data['state'] === state

test('each call that changes something is a sentence for the streams of its team that ask for changes', async () => {
  const stream = await follow(undefined, team.key, '?changes=true')
  const plain = await follow()
  const other = await follow(undefined, (await makeTeam(service)).key, '?changes=true')
  for (const each of [stream, plain, other]) expect(await each.next()).toMatchObject({ event: 'reset' })
  const made = await call<{ units: Unit[] }>('POST', '/v1/units', { spec: { name: 'web', image: 'node:22' } })
  const id = made.body.units[0]?.id ?? ''
  await call('GET', `/v1/units/${id}`)
  await call('POST', `/v1/units/${id}/exec`, { cmd: ['sh', '-c', 'echo built'] })
  await call('POST', `/v1/units/${id}/exec`, { cmd: [] })
  await call('DELETE', `/v1/units/${id}`)
  const isEnd = ({ event, data }: Event) => event === 'change' && data['action'] === 'unit.destroy'
  const changes = (await stream.until(isEnd)).filter(({ event }) => event === 'change')
  expect(changes.map(({ data }) => data['sentence'])).toEqual([
    'test key created web node:22',
    'test key ran a command in web echo built',
    'test key tried: ran a command in web (validation)',
    'test key destroyed web',
  ])
  const { body } = await call<AuditList>('GET', '/v1/audit?changes=true')
  expect(changes.map(({ data }) => data['id']).toReversed()).toEqual(body.events.map((event) => event.id))
  const seen = await plain.until(({ event, data }) => event === 'gone' && data['id'] === id)
  expect(seen.map(({ event }) => event)).not.toContain('change')
  await service.call('POST', '/v1/units', {
    key: team.key,
    body: { spec: { name: 'web', image: 'node:22' } },
  })
  // A stream that was interrupted goes on behind the sentence that it has seen.
  const again = await follow(changes.at(-1)?.id, team.key, '?changes=true')
  const next = await again.until(({ event }) => event === 'change')
  expect(next.at(-1)?.data['sentence']).toBe('test key created web node:22')
})

test('the event stream begins with reset, and reports a unit from its creation to its end', async () => {
  const stream = await follow()
  expect(await stream.next()).toMatchObject({ event: 'reset', id: expect.any(String), data: {} })
  const made = await call<{ units: Unit[] }>('POST', '/v1/units', {
    spec: { name: 'web', image: 'node:22', ports: [80] },
  })
  const id = made.body.units[0]?.id ?? ''
  const seen = await stream.until(ofUnit(id, 'running'))
  expect(seen).toContainEqual(
    expect.objectContaining({ event: 'stack', data: { id: expect.any(String), name: 'web' } }),
  )
  expect(seen.at(-1)?.data).toEqual((await call<Unit>('GET', `/v1/units/${id}`)).body)
  await call('POST', `/v1/units/${id}/expose`, { port: 80, mode: 'public' })
  await stream.until(({ data }) => (data['endpoints'] as unknown[] | undefined)?.length === 1)
  await call('POST', `/v1/units/${id}/sleep`, { sleep: '7m' })
  await stream.until(({ data }) => data['sleep'] === '7m')
  await call('POST', `/v1/units/${id}/stop`)
  await stream.until(ofUnit(id, 'stopped'))
  await call('DELETE', `/v1/units/${id}`)
  const end = await stream.until(({ event, data }) => event === 'gone' && data['id'] === id)
  expect(end.filter(ofUnit(id, 'destroyed'))).toEqual([])
})

test('the event stream reports changes of an agent, also by another process', async () => {
  const key = await makeKey(service, team)
  const stream = await follow()
  await stream.next()
  await service.app.db
    .updateTable('credentials')
    .set({ name: 'by another process' })
    .where('id', '=', key.id)
    .execute()
  tellChanged(service.app, team.teamId)
  expect(await stream.next()).toMatchObject({
    event: 'agent',
    data: { id: key.id, name: 'by another process' },
  })
})

test('the event stream reports an invitation, a new member, their role and the name of the team', async () => {
  const { id: teamId, owner } = await makeSharedTeam(service)
  const key = await makeKey(service, { teamId, userId: owner.userId })
  const stream = await follow(undefined, key.secret)
  await stream.next()
  const told = { event: 'team', id: expect.any(String), data: { id: teamId } }
  const changed = async (method: string, path: string, body: object) => {
    const answer = await service.call(method, `/v1/teams/${teamId}${path}`, {
      cookie: owner.cookie,
      headers: { origin: service.baseUrl },
      body,
    })
    expect(answer.status).toBeLessThan(300)
    expect(await stream.next()).toEqual(told)
  }
  await changed('POST', '/invites', { email: 'guest@example.test', role: 'member' })
  const { userId } = await makeMember(service, teamId, 'member')
  tellChanged(service.app, teamId)
  expect(await stream.next()).toEqual(told)
  await changed('PATCH', `/members/${userId}`, { role: 'admin' })
  await changed('PATCH', '', { name: 'Another name' })
})

test('the event stream resumes where a client was cut off, and resets one with an unknown position', async () => {
  const first = await follow()
  const { id: begun } = await first.next()
  const unit = await makeUnit(service, team)
  const seen = await first.until(ofUnit(unit.id, 'running'))
  const second = await follow(begun)
  for (const event of seen) expect(await second.next()).toEqual(event)
  for (const unknown of ['none', 'ffffffffffff-1', `${begun?.split('-')[0]}-999`, `${begun}x`])
    expect([unknown, (await (await follow(unknown)).next()).event]).toEqual([unknown, 'reset'])
})

test('the event stream reports nothing of another team', async () => {
  const stream = await follow()
  await stream.next()
  const other = await makeTeam(service)
  await makeUnit(service, other)
  const mine = await makeUnit(service, team)
  const seen = await stream.until(ofUnit(mine.id, 'running'))
  expect(JSON.stringify(seen)).not.toContain(other.teamId)
  for (const { event, data } of seen) if (event === 'unit') expect(data['id']).toBe(mine.id)
})

test('the event stream reports unannounced changes within ten seconds, and costs later', async () => {
  const unit = await makeUnit(service, team)
  const stream = await follow()
  await stream.next()
  const sleepsAt = new Date(service.clock.now().getTime() + 3600 * SECOND)
  await service.app.db.updateTable('units').set({ sleeps_at: sleepsAt }).where('id', '=', unit.id).execute()
  service.clock.advance(11 * SECOND)
  await stream.until(({ data }) => data['sleepsAt'] === sleepsAt.toISOString())
  const money = stream.until(({ event }) => event === 'money')
  service.clock.advance(600 * SECOND)
  const told = (await money).at(-1)
  expect(told?.data).toEqual({ spentTodayCents: expect.any(Number), creditBalanceCents: expect.any(Number) })
})

test('the event stream reports the end of a background process, to its own team', async () => {
  const other = await makeTeam(service)
  const theirs = await makeUnit(service, other)
  const mine = await makeUnit(service, team)
  const stream = await follow()
  await stream.next()
  const start = async (key: string, id: string, body: object) =>
    (await service.call<{ id: string }>('POST', `/v1/units/${id}/processes`, { key, body })).body
  await start(other.key, theirs.id, { cmd: ['true'] })
  const ended = await start(team.key, mine.id, { cmd: ['sh', '-c', 'exit 3'], tag: 'build' })
  const seen = await stream.until(({ event }) => event === 'process')
  expect(seen.at(-1)?.data).toEqual({
    unitId: mine.id,
    id: ended.id,
    tag: 'build',
    state: 'exited',
    exitCode: 3,
  })
  const lost = await start(team.key, mine.id, { cmd: ['sleep', 'infinity'] })
  await call('POST', `/v1/units/${mine.id}/stop`)
  expect((await stream.until(({ event }) => event === 'process')).at(-1)?.data).toMatchObject({
    id: lost.id,
    exitCode: 137,
  })
})

test('the event stream reports very many changes as one reset', async () => {
  const stream = await follow()
  await stream.next()
  const stacks = Array.from({ length: 501 }, (_, i) => ({
    id: newId('stack'),
    team_id: team.teamId,
    name: `many-${i}`,
    created_at: service.clock.now(),
  }))
  await service.app.db
    .insertInto('stacks')
    .values(stacks as never)
    .execute()
  tellChanged(service.app, team.teamId)
  expect((await stream.next()).event).toBe('reset')
})

test('the event stream has one audit row, and ends when its key is revoked', async () => {
  const key = await makeKey(service, team)
  const stream = await follow(undefined, key.secret)
  await stream.next()
  await makeUnit(service, team)
  await stream.until(({ event }) => event === 'unit')
  await revokeCredential(service.app.db, { teamId: team.teamId, id: key.id, at: service.clock.now() })
  service.clock.advance(5 * SECOND)
  const end = await stream.until(({ event }) => event === 'error')
  expect(end.at(-1)?.data).toMatchObject({ error: { code: 'unauthorized' } })
  const rows = async () =>
    await service.app.db
      .selectFrom('audit')
      .select(['action', 'status'])
      .where('credential_id', '=', key.id)
      .execute()
  await expect.poll(rows).toEqual([{ action: 'event.follow', status: 401 }])
})

test('a unit that waits for its image is told with stage, bytes and log, to its team alone, until it runs', async () => {
  const { engine } = service
  const goOn = engine.hang('pull')
  const made = await call<{ units: [Unit] }>('POST', '/v1/units', {
    spec: { name: 'first', image: 'berth.local/python:3.11' },
    wait: false,
  })
  const [{ id }] = made.body.units
  const stream = await follow()
  const stranger = await makeTeam(service)
  const theirs = await follow(undefined, stranger.key)
  await theirs.next()
  const pull = { machines: [id, 'unit_of_another_team'], ageMs: 5000, bytes: null, lines: [] }
  const read = async () => (await call<Unit>('GET', `/v1/units/${id}`)).body.progress
  expect(await read()).toMatchObject({ stage: 'preparing', bytes: null, log: [] })
  const bytes = { done: 12_000_000, total: 80_000_000 }
  await stream.next()
  engine.tellPulls([{ ...pull, stage: 'downloading', bytes }])
  const [event] = await stream.until(({ data }) => data['id'] === id)
  expect(event?.data['progress']).toMatchObject({ stage: 'downloading', bytes })
  engine.tellPulls([{ ...pull, stage: 'building', lines: ['Setting up libc6 2.36'] }])
  const [building] = await stream.until(({ data }) => data['id'] === id)
  expect(building?.data['progress']).toMatchObject({ stage: 'building', log: ['Setting up libc6 2.36'] })
  expect(await read()).toEqual(building?.data['progress'])
  goOn()
  const events = await stream.until(ofUnit(id, 'running'))
  expect(events.at(-1)?.data['progress']).toBeNull()
  // What the engine still says of it changes nothing.
  engine.tellPulls([{ ...pull, stage: 'unpacking' }])
  expect(await read()).toBeNull()
  const their = await makeUnit(service, stranger, { name: 'theirs' })
  const seen = await theirs.until(ofUnit(their.id, 'running'))
  expect(JSON.stringify(seen)).not.toContain(id)
})
