// Labels of units, and their end, over HTTP.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Unit, UnitList, UnitSummary } from '../../src/contract/unit.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

type Answer = Unit & { error: { code: string; message: string } }

let service: Service
let team: TestTeam
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

const create = async (name: string, fields: Record<string, unknown> = {}) => {
  const body = { spec: { name, image: 'node:22', ...fields } }
  const answer = await service.call<{ units: Unit[] }>('POST', '/v1/units', { key: team.key, body })
  const [unit] = answer.body.units
  if (!unit) throw new Error('a create answered no unit')
  return unit
}
const change = async (id: string, body: unknown, { key } = team) =>
  await service.call<Answer>('PATCH', `/v1/units/${id}`, { key, body })
const filtered = async (labels: Record<string, string>, path = '/v1/units') => {
  const query = new URLSearchParams({ metadata: new URLSearchParams(labels).toString() })
  return await service.call<UnitList & UnitSummary>('GET', `${path}?${query.toString()}`, { key: team.key })
}
const names = async (labels: Record<string, string>) =>
  (await filtered(labels)).body.units.map(({ name }) => name)

describe('lists by labels', () => {
  it('have the units with all of them, also with characters that a query uses', async () => {
    await create('one', { metadata: { app: 'shop', user: 'a&b=c %' } })
    await create('two', { metadata: { app: 'shop' } })
    await create('three')
    expect(await names({ app: 'shop' })).toEqual(['two', 'one'])
    expect(await names({ user: 'a&b=c %' })).toEqual(['one'])
    expect(await names({ app: 'sho' })).toEqual([])
    expect((await filtered({ app: 'shop' }, '/v1/units/summary')).body.total).toBe(2)
  })

  it.each(['', '=1', 'app=1&app=2'])('refuse the filter %j', async (pairs) => {
    const path = `/v1/units?${new URLSearchParams({ metadata: pairs }).toString()}`
    const answer = await service.call<Answer>('GET', path, { key: team.key })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'validation' } } })
  })

  it('never have units of another team', async () => {
    const other = await makeTeam(service)
    const path = `/v1/units?${new URLSearchParams({ metadata: 'app=shop' }).toString()}`
    expect((await service.call<UnitList>('GET', path, { key: other.key })).body.units).toEqual([])
  })
})

describe('a change of a unit', () => {
  it('answers the unit with its new labels and its end', async () => {
    const unit = await create('changed')
    const { status, body } = await change(unit.id, {
      metadata: { job: '1' },
      timeToLive: '2h',
      atEnd: 'sleep',
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({ metadata: { job: '1' }, timeToLive: '2h', atEnd: 'sleep' })
    expect(Date.parse(body.endsAt ?? '')).toBeGreaterThan(Date.now() + 7_100_000)
  })

  it('is in the audit log with the names of its labels, not with their values', async () => {
    const unit = await create('audited')
    const { headers } = await change(unit.id, { metadata: { person: 'Ada' }, timeToLive: '1h' })
    const rows = await service.app.db
      .selectFrom('audit')
      .select(['action', 'target', 'input'])
      .where('request_id', '=', headers.get('x-request-id') ?? '')
      .execute()
    expect(rows).toEqual([
      { action: 'unit.change', target: unit.id, input: { metadata: ['person'], timeToLive: '1h' } },
    ])
  })

  it('of another team is refused', async () => {
    const unit = await create('kept')
    expect((await change(unit.id, { timeToLive: '1s' }, await makeTeam(service))).status).toBe(403)
  })

  it.each([
    [{ timeToLive: 300 }, 'timeToLive: must be a string'],
    [{ timeToLive: '0s' }, 'timeToLive: must be "never"'],
    [{ atEnd: 'freeze' }, 'atEnd'],
    [{ metadata: { a: 1 } }, 'metadata.a'],
    [{ metadata: { '': 'x' } }, 'metadata'],
    [{ metadata: { a: 'x'.repeat(1025) } }, 'metadata.a: must be at most 1024 characters'],
    [
      { metadata: Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`n${index}`, ''])) },
      'metadata: must have at most 64 entries',
    ],
  ])('refuses %j', async (body, message) => {
    const unit = await create(`refused-${Math.random().toString(36).slice(2, 8)}`)
    const answer = await change(unit.id, body)
    expect(answer.status).toBe(400)
    expect(answer.body.error.message).toContain(message)
  })
})

it('a unit whose time to live has passed is destroyed', async () => {
  const unit = await create('short', { timeToLive: '1s' })
  await expect
    .poll(
      async () => (await service.call<Unit>('GET', `/v1/units/${unit.id}`, { key: team.key })).body.state,
      { timeout: 20_000 },
    )
    .toBe('destroyed')
})
