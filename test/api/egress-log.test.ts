// GET /v1/units/{id}/egress/log: what a unit reached and was refused, as the engine tells it, once or as a stream.

import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { type EgressLogPage, egressLogPageSchema } from '../../src/contract/egress-log.ts'
import { forgetOldEgressLog, watchEgress } from '../../src/domain/egress/keep-log.ts'
import { DAY, MINUTE } from '../../src/lib/clock.ts'
import { type MachineSeen, minuteOf, seenLine, type SeenLine } from '../../src/lib/egress/seen.ts'
import { addToEgressLog, trimEgressLog } from '../../src/store/egress-log.ts'
import { readEvents } from '../support/events.ts'
import { newEra } from '../support/mcp.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let unit: { id: string }
const stopped = new AbortController()

beforeAll(async () => {
  service = await startService()
  void watchEgress(service.app, stopped.signal)
})
afterAll(async () => {
  stopped.abort()
  await service.close()
})
beforeEach(async () => {
  team = await makeTeam(service)
  unit = await makeUnit(service, team)
  minute = minuteOf(service.app.clock.now())
})

/** Of the whole test: lines of two minutes are two. */
let minute: number
const now = () => minute
const refused = (host: string | null, more: Partial<SeenLine> = {}): SeenLine => ({
  minute: now(),
  host,
  address: null,
  port: null,
  protocol: 'dns',
  decision: 'refused',
  reason: host === null ? 'others' : 'not_listed',
  rule: null,
  secret: null,
  bytesIn: 0,
  bytesOut: 0,
  count: 1,
  ...more,
})
const allowed = (host: string, more: Partial<SeenLine> = {}): SeenLine =>
  refused(host, {
    address: '203.0.113.7',
    port: 443,
    protocol: 'tls',
    decision: 'allowed',
    reason: 'listed',
    rule: host,
    ...more,
  })
const see = (...lines: SeenLine[]) =>
  service.engine.seeEgress(lines.map((line) => ({ ...line, machine: unit.id })))
const read = async (query = '', key = team.key) =>
  await service.call<EgressLogPage>('GET', `/v1/units/${unit.id}/egress/log${query}`, { key })
const hosts = ({ lines }: EgressLogPage) => lines.map(({ host, count }) => `${host} ×${count}`)
const untilRead = async (expected: string[], query = '') => {
  await vi.waitFor(async () => expect(hosts((await read(query)).body)).toEqual(expected), 5000)
}

const add = async (lines: MachineSeen[], hostId?: string) => {
  const { host_id } = await service.app.db
    .selectFrom('units')
    .select('host_id')
    .where('id', '=', unit.id)
    .executeTakeFirstOrThrow()
  await addToEgressLog(service.app.db, { hostId: hostId ?? host_id, lines })
}

test('a minute without the process that decides by name has a line that says so', async () => {
  see(refused(null, { protocol: 'tls', reason: 'not_enforced', count: 0 }))
  await untilRead(['null ×0'])
  const [line] = egressLogPageSchema.parse((await read()).body).lines
  expect(line).toMatchObject({ decision: 'refused', port: null, entry: null })
  expect(line?.reason).toContain('The process that decides by name is starting or has failed')
})

test('a line says who was asked for, what was decided, why, and what to add', async () => {
  see(allowed('api.example.com', { bytesIn: 5000, bytesOut: 300 }), refused('evil.example.com', { count: 3 }))
  await untilRead(['api.example.com ×1', 'evil.example.com ×3'])
  const { status, body } = await read()
  expect(status).toBe(200)
  expect(egressLogPageSchema.parse(body).lines).toEqual([
    {
      at: new Date(now()).toISOString(),
      host: 'api.example.com',
      address: '203.0.113.7',
      port: 443,
      protocol: 'tls',
      decision: 'allowed',
      rule: 'api.example.com',
      reason: 'The entry api.example.com allows it.',
      entry: null,
      secret: null,
      bytesIn: 5000,
      bytesOut: 300,
      count: 1,
    },
    expect.objectContaining({
      host: 'evil.example.com',
      port: null,
      reason: 'No entry of "allow" names evil.example.com: add evil.example.com.',
      entry: 'evil.example.com',
    }),
  ])
})

test('what is told again of the same minute is added up, and comes again after its cursor', async () => {
  see(refused('a.example.com'), refused('b.example.com'))
  await untilRead(['a.example.com ×1', 'b.example.com ×1'])
  const { next } = (await read()).body
  expect((await read(`?since=${next}`)).body).toEqual({ lines: [], next })
  see(refused('a.example.com', { count: 4 }), refused('a.example.com', { port: 443, protocol: 'tls' }))
  await untilRead(['a.example.com ×5', 'a.example.com ×1'], `?since=${next}`)
  await untilRead(['b.example.com ×1', 'a.example.com ×5', 'a.example.com ×1'])
  expect((await read('?limit=1')).body.lines).toMatchObject([{ port: 443, entry: 'a.example.com' }])
})

test('lines can be asked for by decision and from a time on', async () => {
  see(allowed('a.example.com', { minute: now() - 10 * MINUTE }), refused('b.example.com'))
  await untilRead(['a.example.com ×1', 'b.example.com ×1'])
  await untilRead(['b.example.com ×1'], '?decision=refused')
  const since = new Date(now() - MINUTE).toISOString()
  await untilRead(['b.example.com ×1'], `?since=${since}`)
  expect((await read('?since=yesterday')).status).toBe(400)
  expect((await read('?decision=maybe')).status).toBe(400)
})

test('a followed log has what is there, then what comes, one audit row, and ends with its unit', async () => {
  see(refused('a.example.com'))
  await untilRead(['a.example.com ×1'])
  const answer = await service.fetch('GET', `/v1/units/${unit.id}/egress/log?follow=true`, { key: team.key })
  const told: unknown[] = []
  for await (const { event, data } of readEvents(answer)) {
    told.push(event === 'line' ? (data as { host: string }).host : event)
    if (told.length === 1) see(refused('b.example.com'))
    if (told.length === 2) await service.call('DELETE', `/v1/units/${unit.id}`, { key: team.key })
  }
  expect(told).toEqual(['a.example.com', 'b.example.com', 'end'])
  const rows = () =>
    service.app.db
      .selectFrom('audit')
      .select('action')
      .where('target', '=', unit.id)
      .where('action', '=', 'unit.egress.log')
      .where('input', '@>', JSON.stringify({ follow: true }) as never)
      .execute()
  // The row of a stream that only reads is written once the stream has ended.
  await expect.poll(rows).toHaveLength(1)
  // It is kept for a week, whatever becomes of the unit.
  await untilRead(['a.example.com ×1', 'b.example.com ×1'])
})

test('an agent is told which names were refused, and whom to ask', async () => {
  see(refused('evil.example.com'), allowed('a.example.com'))
  await untilRead(['evil.example.com ×1', 'a.example.com ×1'])
  const session = await newEra({ baseUrl: service.baseUrl, key: team.key })
  const { text } = await session.call('read_logs', { unit: unit.id, egress: true })
  await session.close()
  expect(text).toContain('To be allowed to reach evil.example.com, ask the person you work for')
  expect(text).toContain('refused evil.example.com ×1 No entry of "allow" names evil.example.com')
  expect(text).toContain('allowed a.example.com:443 ×1')
})

test('another team reads nothing, and lines of a unit that is unknown or on another host are dropped alone', async () => {
  const line = refused('a.example.com')
  service.engine.seeEgress([
    { ...line, machine: 'unit_gone' },
    { ...line, machine: unit.id },
  ])
  await add([{ ...refused('b.example.com'), machine: unit.id }], 'host_other')
  await untilRead(['a.example.com ×1'])
  expect((await read('', (await makeTeam(service)).key)).status).toBe(403)
})

test('lines older than a week go, and of one unit the oldest beyond a number', async () => {
  const { app } = service
  const machine = unit.id
  await add([
    { ...refused('old.example.com', { minute: now() - 8 * DAY }), machine },
    { ...refused('new.example.com', { minute: now() - 6 * DAY }), machine },
  ])
  await forgetOldEgressLog(app)
  await untilRead(['new.example.com ×1'])
  for (const name of ['a', 'b', 'c']) await add([{ ...refused(`${name}.example.com`), machine }])
  await trimEgressLog(app.db, { unitId: machine, most: 2 })
  await untilRead(['b.example.com ×1', 'c.example.com ×1'])
})

test('no name that is told throws, and none has a character that a terminal would obey', async () => {
  const names = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.domain(),
    fc.constant('x'.repeat(253)),
  )
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(names, { maxLength: 20 }), async (given) => {
      const parsed = given.map((name) => seenLine.safeParse(refused(name)))
      const lines = parsed.flatMap(({ data }) => (data ? [{ ...data, machine: unit.id }] : []))
      for (const { host } of lines) expect(host).toMatch(/^[a-z0-9_.-]{1,253}$/)
      await add(lines)
    }),
    { numRuns: 50 },
  )
  expect((await read('?limit=200')).status).toBe(200)
})
