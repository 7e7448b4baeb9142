// Stacks over HTTP (spec 2.13, 4.3, design 5).

import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Stack } from '../../src/contract/stack.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { isReplay, told } from '../support/replay.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService()
})
beforeEach(async () => {
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

type Refused = { error: { code: string; message: string; details: unknown } }

const call = async <T = Stack>(method: string, path: string, body?: unknown, key = team.key) =>
  await service.call<T & Refused>(method, path, { key, body })
const createIn = async (stack: string, name: string, spec: object = {}) => {
  const body = { spec: { name, image: 'node:22', ...spec }, stack }
  const answer = await call<{ units: Unit[]; outputs: Record<string, string> }>('POST', '/v1/units', body)
  expect(answer.status).toBe(201)
  return answer.body
}
const list = async (query = '') =>
  (await call<{ stacks: Stack[]; next: string | null }>('GET', `/v1/stacks${query}`)).body
const names = ({ stacks }: { stacks: Stack[] }) => stacks.map(({ name }) => name)

describe('a stack', () => {
  it('is created by name, and read by id or name', async () => {
    const made = await call('POST', '/v1/stacks', { name: 'shop' })
    expect(made.status).toBe(201)
    expect(made.body).toEqual({
      id: expect.stringMatching(/^stack_/),
      name: 'shop',
      teamId: team.teamId,
      createdAt: expect.any(String),
      units: [],
    })
    for (const idOrName of [made.body.id, 'shop']) {
      expect(await call('GET', `/v1/stacks/${idOrName}`)).toMatchObject({ status: 200, body: made.body })
    }
  })

  it('contains its units, oldest first, also those created by its name', async () => {
    const { body: made } = await call('POST', '/v1/stacks', { name: 'shop' })
    await createIn('shop', 'db')
    await createIn('shop', 'web')
    await createIn('other', 'job')
    const { body } = await call('GET', '/v1/stacks/shop')
    expect(body.units).toMatchObject([
      { name: 'db', state: 'running', internalHost: 'db.shop.internal', stackId: made.id },
      { name: 'web', costCentsSoFar: expect.any(Number), sleepsAt: expect.any(String) },
    ])
    await call('DELETE', `/v1/units/${body.units[0]?.id}`)
    expect((await call('GET', '/v1/stacks/shop')).body.units).toMatchObject([{ name: 'web' }])
  })

  it.each([
    [{}, 'name: is required'],
    [{ name: 'Shop' }, 'name: must be'],
    [{ name: 's'.repeat(33) }, 'name: must be'],
    [{ name: 'shop', region: 'paris' }, 'the fields here are name'],
  ])('with the body %j is refused, and the error says what to send', async (body, message) => {
    const answer = await call('POST', '/v1/stacks', body)
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'validation' } } })
    expect(answer.body.error.message).toContain(message)
  })

  it('has a name that is unique within its team', async () => {
    const { body: made } = await call('POST', '/v1/stacks', { name: 'shop' })
    const again = await call('POST', '/v1/stacks', { name: 'shop' })
    expect(again).toMatchObject({
      status: 409,
      body: { error: { code: 'conflict', details: { stackId: made.id } } },
    })
    const other = await makeTeam(service)
    expect((await call('POST', '/v1/stacks', { name: 'shop' }, other.key)).status).toBe(201)
  })

  it('is created once for a name, also with concurrent requests', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => call('POST', '/v1/stacks', { name: 'shop' })),
    )
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      201,
      ...Array<number>(9).fill(409),
    ])
    expect(names(await list())).toEqual(['shop'])
  })

  it('is returned again for a repeated Idempotency-Key', async () => {
    const options = { key: team.key, body: { name: 'shop' }, headers: { 'idempotency-key': 'one' } }
    const first = await service.call('POST', '/v1/stacks', options)
    const second = await service.call('POST', '/v1/stacks', options)
    expect(told(second)).toBe(told(first))
    expect([isReplay(first), isReplay(second)]).toEqual([false, true])
  })

  it('of another team returns 403, and an unknown one 404', async () => {
    const { body: made } = await call('POST', '/v1/stacks', { name: 'shop' })
    await createIn('shop', 'web')
    const { key } = await makeTeam(service)
    for (const method of ['GET', 'DELETE']) {
      expect((await call(method, `/v1/stacks/${made.id}`, undefined, key)).status).toBe(403)
      expect((await call(method, '/v1/stacks/shop', undefined, key)).status).toBe(404)
      expect((await call(method, '/v1/stacks/stack_nowhere', undefined, key)).status).toBe(404)
    }
    expect((await call('GET', '/v1/stacks/shop')).body.units).toMatchObject([{ state: 'running' }])
  })
})

describe('GET /v1/stacks', () => {
  it('lists the stacks of the team, newest first, with their units', async () => {
    await call('POST', '/v1/stacks', { name: 'one' })
    await createIn('two', 'web')
    await createIn('two', 'db')
    const other = await makeTeam(service)
    await makeUnit(service, other)
    const { stacks } = await list()
    expect(stacks).toMatchObject([
      { name: 'two', units: [{ name: 'web' }, { name: 'db' }] },
      { name: 'one', units: [] },
    ])
  })

  it('continues after the end of a page', async () => {
    for (const name of ['a', 'b', 'c']) await call('POST', '/v1/stacks', { name })
    const first = await list('?limit=2')
    expect(names(first)).toEqual(['c', 'b'])
    const second = await list(`?limit=2&cursor=${first.next}`)
    expect(names(second)).toEqual(['a'])
    expect(second.next).toBeNull()
  })

  it.each(['limit=0', 'limit=501', 'cursor=nonsense', 'cursor=dW5pdF8x'])('refuses %s', async (query) => {
    expect((await call('GET', `/v1/stacks?${query}`)).status).toBe(400)
  })

  it('ends a page early when its stacks have many units', async () => {
    const [{ body: one }, { body: two }, { body: three }] = [
      await call('POST', '/v1/stacks', { name: 'one' }),
      await call('POST', '/v1/stacks', { name: 'two' }),
      await call('POST', '/v1/stacks', { name: 'three' }),
    ]
    const { units } = await createIn('three', 'unit-0')
    await sql`
      insert into units select (jsonb_populate_record(units, jsonb_build_object(
        'id', units.id || n, 'name', units.name || n, 'address', null, 'state', 'stopped', 'stopped_reason', 'user',
        'stack_id', case when n <= 300 then ${two.id}::text else ${one.id}::text end
      ))).* from units cross join generate_series(1, 900) as n where id = ${units[0]?.id}
    `.execute(service.app.db)
    const first = await list()
    expect(first.stacks.map((stack) => [stack.id, stack.units.length])).toEqual([
      [three.id, 1],
      [two.id, 300],
    ])
    const second = await list(`?cursor=${first.next}`)
    expect(second.stacks.map((stack) => [stack.id, stack.units.length])).toEqual([[one.id, 600]])
    await service.app.db.deleteFrom('units').where('stack_id', 'in', [one.id, two.id]).execute()
  })
})

describe('deleting a stack', () => {
  it('destroys its units, and returns them', async () => {
    const [web] = (await createIn('shop', 'web')).units
    const [db] = (await createIn('shop', 'db')).units
    await call('POST', `/v1/units/${db?.id}/stop`)
    const [other] = (await createIn('other', 'job')).units
    const answer = await call('DELETE', '/v1/stacks/shop')
    expect(answer).toMatchObject({
      status: 200,
      body: {
        id: web?.stackId,
        units: [
          { id: web?.id, state: 'destroyed' },
          { id: db?.id, state: 'destroyed' },
        ],
      },
    })
    const machines = service.engine.machines().map(({ id }) => id)
    expect(machines).not.toContain(web?.id)
    expect(machines).not.toContain(db?.id)
    expect(machines).toContain(other?.id)
    expect(names(await list())).toEqual(['other'])
    expect((await call('GET', `/v1/stacks/${web?.stackId}`)).status).toBe(404)
    expect((await call<Unit>('GET', `/v1/units/${web?.id}`)).body).toMatchObject({ state: 'destroyed' })
  })

  it('can be repeated by id', async () => {
    const [web] = (await createIn('shop', 'web')).units
    await call('DELETE', '/v1/stacks/shop')
    expect(await call('DELETE', `/v1/stacks/${web?.stackId}`)).toMatchObject({
      status: 200,
      body: { name: 'shop', units: [] },
    })
    expect((await call('DELETE', '/v1/stacks/shop')).status).toBe(404)
  })

  it('frees its name at once, and deletes its generated secrets', async () => {
    const spec = { env: { PASSWORD: { secret: 'password' } } }
    const first = await createIn('shop', 'web', spec)
    const release = service.engine.hang('destroy')
    const deleting = call('DELETE', '/v1/stacks/shop')
    await expect.poll(async () => names(await list())).toEqual([])
    const second = await createIn('shop', 'web', spec)
    release()
    expect((await deleting).status).toBe(200)
    expect(second.units[0]?.stackId).not.toBe(first.units[0]?.stackId)
    expect(second.outputs['password']).toMatch(/^[\w-]{32}$/)
    expect(second.outputs['password']).not.toBe(first.outputs['password'])
  })

  it('destroys a unit that is still being created', async () => {
    const release = service.engine.hang('pull')
    const creating = call('POST', '/v1/units', { spec: { name: 'web', image: 'node:22' }, stack: 'shop' })
    await expect.poll(async () => (await list()).stacks[0]?.units.length).toBe(1)
    const { body } = await call('DELETE', '/v1/stacks/shop')
    expect(body.units).toMatchObject([{ state: 'destroyed' }])
    release()
    await creating
    const machines = service.engine.machines().map(({ id }) => id)
    expect(machines).not.toContain(body.units[0]?.id)
  })

  it('leaves no unit of concurrent creates', async () => {
    await createIn('shop', 'first')
    const creates = Array.from({ length: 8 }, (_, n) => createIn('shop', `unit-${n}`))
    const { body: deleted } = await call('DELETE', '/v1/stacks/shop')
    const made = (await Promise.all(creates)).flatMap(({ units }) => units)
    const units = (await call<{ units: Unit[] }>('GET', '/v1/units')).body.units
    for (const unit of units) expect(unit.stackId).not.toBe(deleted.id)
    expect(made).toHaveLength(8)
  })

  it('continues by itself after a failure', async () => {
    await createIn('shop', 'web')
    const [db] = (await createIn('shop', 'db')).units
    service.engine.fail('destroy', 'internal')
    expect((await call('DELETE', '/v1/stacks/shop')).status).toBe(502)
    await expect
      .poll(async () => {
        service.clock.advance(5_000)
        return (await call<{ units: Unit[] }>('GET', '/v1/units')).body.units
      })
      .toEqual([])
    expect((await call<Unit>('GET', `/v1/units/${db?.id}`)).body.state).toBe('destroyed')
  })
})

describe('a stack that was made for a unit without a stack', () => {
  it('is deleted with its last unit', async () => {
    const { id, name, stackId } = await makeUnit(service, team)
    const [second] = (await call<{ units: Unit[] }>('POST', `/v1/units/${id}/fork`, {})).body.units
    await call('DELETE', `/v1/units/${id}`)
    expect(names(await list())).toEqual([name])
    await call('DELETE', `/v1/units/${second?.id}`)
    expect(names(await list())).toEqual([])
    expect((await call('GET', `/v1/stacks/${stackId}`)).status).toBe(404)
    expect((await call('POST', '/v1/stacks', { name })).status).toBe(201)
  })

  it('is deleted once when its last units are destroyed concurrently', async () => {
    const { id } = await makeUnit(service, team)
    const forks = await Promise.all(
      Array.from({ length: 3 }, () => call<{ units: Unit[] }>('POST', `/v1/units/${id}/fork`, {})),
    )
    const ids = [id, ...forks.flatMap(({ body }) => body.units.map((unit) => unit.id))]
    await Promise.all(ids.map((each) => call('DELETE', `/v1/units/${each}`)))
    expect(names(await list())).toEqual([])
  })

  it('is kept when a create has named it', async () => {
    const { id, name } = await makeUnit(service, team)
    const { units } = await createIn(name, 'second')
    await call('DELETE', `/v1/units/${id}`)
    await call('DELETE', `/v1/units/${units[0]?.id}`)
    expect(names(await list())).toEqual([name])
  })
})

it('a named stack is kept when its last unit is destroyed', async () => {
  const { units } = await createIn('shop', 'web')
  await call('DELETE', `/v1/units/${units[0]?.id}`)
  expect((await list()).stacks).toMatchObject([{ name: 'shop', units: [] }])
})

it('calls about stacks are audited with the stack’s id', async () => {
  const { body: made } = await call('POST', '/v1/stacks', { name: 'shop' })
  await call('GET', '/v1/stacks/shop')
  await call('DELETE', '/v1/stacks/shop')
  const rows = await service.app.db
    .selectFrom('audit')
    .select(['action', 'target', 'status'])
    .where('team_id', '=', team.teamId)
    .orderBy('id')
    .execute()
  expect(rows).toEqual([
    { action: 'stack.create', target: made.id, status: 201 },
    { action: 'stack.get', target: made.id, status: 200 },
    { action: 'stack.destroy', target: made.id, status: 200 },
  ])
})
