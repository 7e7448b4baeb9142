// GET /v1/units by state, text and order, and GET /v1/units/summary.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Unit, UnitList, UnitSummary } from '../../src/contract/unit.ts'
import { newId } from '../../src/lib/ids.ts'
import { makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
/** The first runs, the second is stopped, the third sleeps, the fourth is destroyed. */
let units: Unit[]

beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  units = []
  for (const [name, stack, image] of [
    ['web', 'shop', 'node:22'],
    ['database', 'shop', 'postgres:16'],
    ['cache', 'side', 'ghcr.io/acme/fast-cache:1'],
    ['gone', 'side', 'node:22'],
  ] as const) {
    const { body } = await service.call<{ units: Unit[] }>('POST', '/v1/units', {
      key: team.key,
      body: { spec: { name, image, volume: { mount: '/data', gb: 2 } }, stack },
    })
    units.push(...body.units)
  }
  await service.call('POST', `/v1/units/${units[1]?.id}/stop`, { key: team.key })
  await service.call('POST', `/v1/units/${units[2]?.id}/sleep`, {
    key: team.key,
    body: { sleep: '1h', now: true },
  })
  await service.call('DELETE', `/v1/units/${units[3]?.id}`, { key: team.key })
})
afterAll(async () => await service.close())

const list = async (query: string, { key } = team) =>
  (await service.call<UnitList>('GET', `/v1/units?${query}`, { key })).body
const names = async (query: string) => (await list(query)).units.map(({ name }) => name)

describe('GET /v1/units with filters', () => {
  test.each([
    ['state=running', ['web']],
    ['state=stopped,sleeping', ['cache', 'database']],
    ['state=destroyed', ['gone']],
    ['state=destroyed,running', ['gone', 'web']],
    ['q=SHOP', ['database', 'web']],
    ['q=e', ['cache', 'database', 'web']],
    ['q=FAST-cache', ['cache']],
    ['q=postgres&state=running', []],
    ['q=%25', []],
    ['q=_', []],
    ['q=e&stack=side', ['cache']],
    ['q=&all=true', ['gone', 'cache', 'database', 'web']],
    ['sort=name', ['cache', 'database', 'web']],
    ['sort=-name', ['web', 'database', 'cache']],
    ['sort=state', ['web', 'cache', 'database']],
    ['sort=createdAt', ['web', 'database', 'cache']],
  ])('returns the matching units for %s', async (query, expected) => {
    expect(await names(query)).toEqual(expected)
  })

  test.each(['name', 'state', 'cost', 'lastUsedAt', 'createdAt'])(
    'sorted by %s is the same in one page and in many, in both directions',
    async (order) => {
      for (const sort of [order, `-${order}`]) {
        const whole = await names(`sort=${sort}&all=true`)
        expect(whole).toHaveLength(4)
        const pages: string[] = []
        for (let next: string | null = ''; next !== null; ) {
          const page: UnitList = await list(
            `sort=${sort}&all=true&limit=1${next === '' ? '' : `&cursor=${next}`}`,
          )
          pages.push(...page.units.map(({ name }) => name))
          next = page.next
        }
        expect([sort, pages]).toEqual([sort, whole])
      }
    },
  )

  test('sorted by cost neither skips nor repeats units whose cost grows', async () => {
    const own = await makeTeam(service)
    for (const name of ['one', 'two', 'three']) await makeUnit(service, own, { name })
    const first = await list('sort=-cost&limit=1', own)
    await service.app.db
      .updateTable('meters')
      .set({ price_nano_cents_per_hour: 9_000_000_000_000n })
      .where('unit_id', '<>', first.units[0]?.id ?? '')
      .where('team_id', '=', own.teamId)
      .execute()
    const rest = await list(`sort=-cost&cursor=${first.next}`, own)
    const seen = [...first.units, ...rest.units].map(({ id }) => id)
    expect(new Set(seen).size).toBe(seen.length)
  })

  test.each([
    'state=',
    'state=running,',
    'state=awake',
    'state=Running',
    'sort=size',
    'sort=--name',
    'sort=',
  ])('refuses the query ?%s', async (query) => {
    const { status, body } = await service.call('GET', `/v1/units?${query}`, { key: team.key })
    expect([status, body]).toEqual([
      400,
      expect.objectContaining({
        error: expect.objectContaining({ details: [expect.objectContaining({ path: query.split('=')[0] })] }),
      }),
    ])
  })

  test('refuses a cursor of another order, and an invented one', async () => {
    const { next } = await list('sort=name&limit=1')
    const invented = ['cost', 'lastUsedAt', '-cost'].flatMap((sort) =>
      [
        [sort, newId('unit'), '1e3', new Date().toISOString()],
        [sort, newId('unit'), '9'.repeat(19), new Date().toISOString()],
        [sort, newId('unit'), '1', 'soon'],
        [sort, 'unit_1', '1', new Date().toISOString()],
      ].map((fields): [string, string] => [sort, Buffer.from(fields.join('\n')).toString('base64url')]),
    )
    for (const [sort, cursor] of [['state', next], ['-name', next], ['createdAt', next], ...invented]) {
      const { status } = await service.call('GET', `/v1/units?sort=${sort}&cursor=${cursor}`, {
        key: team.key,
      })
      expect([sort, cursor, status]).toEqual([sort, cursor, 400])
    }
  })
})

describe('GET /v1/units/summary', () => {
  const summary = async (query = '', { key } = team) =>
    (await service.call<UnitSummary>('GET', `/v1/units/summary${query}`, { key })).body

  test('counts units by state, and adds up their hourly cost with volumes', async () => {
    const found = await summary()
    expect(found).toMatchObject({ total: 3, byState: { running: 1, stopped: 1, sleeping: 1, destroyed: 0 } })
    // One small machine, and three volumes of 2 GB.
    expect(found.centsPerHour).toBeCloseTo(0.5 + 3 * 0.02, 6)
    expect(await summary('?all=true')).toMatchObject({ total: 4, byState: { destroyed: 1 } })
  })

  test('accepts the filters of the list, and covers the caller’s team only', async () => {
    expect(await summary('?state=stopped,sleeping&q=cache')).toMatchObject({ total: 1, centsPerHour: 0.02 })
    expect(await summary('?stack=shop')).toMatchObject({ total: 2 })
    expect(await summary('', await makeTeam(service))).toMatchObject({ total: 0, centsPerHour: 0 })
    const { status } = await service.call('GET', '/v1/units/summary?stack=nowhere', { key: team.key })
    expect(status).toBe(404)
  })
})

describe('GET /v1/units/{id}', () => {
  test('shows command, volume, healthcheck and creator of a unit', async () => {
    const spec = {
      name: 'declared',
      image: 'node:22',
      entrypoint: ['/bin/sh'],
      cmd: ['-c', 'sleep 9'],
      volume: { mount: '/data', gb: 3 },
      healthcheck: { cmd: ['true'] },
    }
    const made = await service.call<{ units: Unit[] }>('POST', '/v1/units', { key: team.key, body: { spec } })
    const unit = made.body.units[0]
    expect(unit).toMatchObject({
      entrypoint: spec.entrypoint,
      cmd: spec.cmd,
      volume: spec.volume,
      healthcheck: { cmd: ['true'], intervalMs: expect.any(Number), timeoutMs: expect.any(Number) },
      createdBy: { id: team.keyId, kind: 'key', name: 'test key' },
      copied: null,
      forkedFrom: null,
    })
    const cookie = await makeSession(service, team)
    const forked = await service.call<{ units: Unit[] }>('POST', `/v1/units/${unit?.id}/fork`, {
      cookie,
      headers: { origin: service.baseUrl },
      body: {},
    })
    expect(forked).toMatchObject({ status: 201 })
    expect(forked.body.units[0]).toMatchObject({
      cmd: spec.cmd,
      volume: spec.volume,
      forkedFrom: unit?.id,
      copied: expect.any(String),
      createdBy: { id: team.userId, kind: 'session', name: team.email },
    })
  })
})
