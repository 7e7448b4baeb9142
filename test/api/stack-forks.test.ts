// POST /v1/stacks/{id}/fork over HTTP (spec 2.7, 4.3): the copies of a stack find each other.

import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ForkResult } from '../../src/contract/fork.ts'
import { limits } from '../../src/contract/limits.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { createForker, type Forker } from '../support/forks.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let as: Forker

beforeAll(async () => {
  service = await startService()
  as = createForker(service, () => team.key)
})
beforeEach(async () => {
  team = await makeTeam(service)
  service.engine.setMemory(true)
})
afterAll(async () => await service.close())

describe('a fork of a stack', () => {
  const env = { DB: 'postgres://{{unit:db}}:5432', PASSWORD: { secret: 'password' } }
  async function makeShop(): Promise<{ web: Unit; db: Unit }> {
    const db = await as.create('db', { env: { PASSWORD: { secret: 'password' } } }, { stack: 'shop' })
    const web = await as.create('web', { env, ports: [80] }, { stack: 'shop', expose: 'private' })
    return { web, db }
  }
  const named = ({ units }: ForkResult, name: string) => {
    const unit = units.find((each) => each.name === name)
    if (!unit) throw new Error(`no ${name}`)
    return unit
  }

  it('has a copy of each unit, which find each other and share their secrets', async () => {
    const { web, db } = await makeShop()
    await as.put(db.id, '/data/rows', 'all of them')
    const { status, body } = await as.forkStack('shop', { into: 'trial' })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      stack: 'trial',
      // Its environment has the address of the other database, which its memory must not keep.
      copied: { db: 'memory', web: 'disk' },
      outputs: {},
      skipped: [],
      units: [
        { name: 'db', state: 'running', forkedFrom: db.id },
        { name: 'web', state: 'running', forkedFrom: web.id, internalHost: 'web.trial.internal' },
      ],
    })
    const copy = named(body, 'web')
    expect(await as.exec(copy.id, 'printenv', 'DB')).toBe('postgres://db.trial.internal:5432\n')
    const password = await as.exec(web.id, 'printenv', 'PASSWORD')
    for (const { id } of body.units) expect(await as.exec(id, 'printenv', 'PASSWORD')).toBe(password)
    expect(await as.read(named(body, 'db').id, '/data/rows')).toBe('all of them')
    const added = await as.create('job', { env: { PASSWORD: { secret: 'password' } } }, { stack: 'trial' })
    expect(await as.exec(added.id, 'printenv', 'PASSWORD')).toBe(password)
  })

  it('is one call to the engine, for one instant', async () => {
    await makeShop()
    const before = service.engine.calls.filter(({ operation }) => operation === 'fork').length
    await as.forkStack('shop')
    expect(service.engine.calls.filter(({ operation }) => operation === 'fork')).toHaveLength(before + 1)
  })

  it('resolves names of its own stack once, and none inside a secret (reliability S32)', async () => {
    const env = {
      OTHER: '{{unit:db}} {{unit:db.other}} {{unit:{{unit:db}}}}',
      SELF: '{{unit:web}} {{self:host}}',
      MANY: '{{unit:db}}'.repeat(1000),
      SECRET: { secret: 'own', value: '{{unit:db}}' },
    }
    const web = await as.create('web', { env, ports: [80] }, { stack: 'shop', expose: 'public' })
    expect(await as.exec(web.id, 'printenv', 'SELF')).toMatch(/^web.shop.internal web-/)
    const { body } = await as.forkStack('shop', { into: 'trial' })
    const { id } = named(body, 'web')
    expect(await as.exec(id, 'printenv', 'OTHER')).toBe(
      'db.trial.internal {{unit:db.other}} {{unit:db.trial.internal}}\n',
    )
    expect(await as.exec(id, 'printenv', 'SELF')).toBe('web.trial.internal localhost\n')
    expect(await as.exec(id, 'printenv', 'SECRET')).toBe('{{unit:db}}\n')
    expect(await as.exec(id, 'printenv', 'MANY')).toBe(`${'db.trial.internal'.repeat(1000)}\n`)
  })

  it('is refused beyond the number of units that can be paused at once', async () => {
    const { web } = await makeShop()
    await as.call('POST', `/v1/units/${web.id}/stop`)
    const more = (from: number, to: number) =>
      sql`
      insert into units select (jsonb_populate_record(units, jsonb_build_object(
        'id', units.id || n, 'name', units.name || n, 'address', null
      ))).* from units cross join generate_series(${from}::int, ${to}::int) as n where id = ${web.id}
    `.execute(service.app.db)
    await more(3, limits.forkUnits + 1)
    const refused = await as.forkStack('shop', { into: 'trial' })
    expect(refused).toMatchObject({ status: 409, body: { error: { code: 'invalid_state' } } })
    expect(refused.body.error.message).toContain(`at most ${limits.forkUnits} units at once`)
    expect((await as.call('GET', '/v1/stacks/trial')).status).toBe(404)
    await service.app.db.deleteFrom('units').where('id', 'like', `${web.id}_%`).execute()
  })

  it('has no published endpoints', async () => {
    const { web } = await makeShop()
    const { body } = await as.forkStack('shop', { into: 'trial' })
    expect(web.endpoints).toHaveLength(1)
    for (const { endpoints } of body.units) expect(endpoints).toEqual([])
    expect((await as.get(web.id)).endpoints).toEqual(web.endpoints)
  })

  it('gets a free name by default, and is refused a taken one', async () => {
    await makeShop()
    expect((await as.forkStack('shop')).body.stack).toMatch(/^shop-[0-9a-f]{6}$/)
    for (const into of ['shop', 'taken']) {
      await as.call('POST', '/v1/stacks', { name: 'taken' })
      expect(await as.forkStack('shop', { into })).toMatchObject({ status: 409 })
    }
    expect(await as.units()).toHaveLength(4)
  })

  it('sleeps together like its source, with the requested window or that of its source', async () => {
    const { web } = await makeShop()
    await as.call('POST', `/v1/units/${web.id}/sleep`, { sleep: '15m', stack: true })
    const kept = await as.forkStack('shop', { into: 'kept' })
    expect(kept.body.units.map(({ sleep }) => sleep)).toEqual(['15m', '15m'])
    const changed = await as.forkStack('shop', { into: 'changed', sleep: '5m' })
    expect(changed.body.units.map(({ sleep }) => sleep)).toEqual(['5m', '5m'])
    await as.create('job', {}, { stack: 'changed' })
    const [first, second] = changed.body.units
    await as.putToSleep(first?.id ?? '', { sleep: '5m', stack: true })
    expect((await as.get(second?.id ?? '')).state).toBe('sleeping')
    await as.exec(first?.id ?? '', 'true')
    await expect.poll(async () => (await as.get(second?.id ?? '')).state).toBe('running')
  })

  it('leaves sleeping units asleep, and stopped ones stopped', async () => {
    const { web, db } = await makeShop()
    const job = await as.create('job', {}, { stack: 'shop' })
    await as.putToSleep(db.id)
    await as.call('POST', `/v1/units/${job.id}/stop`)
    const { body } = await as.forkStack('shop', { into: 'trial' })
    expect(named(body, 'db')).toMatchObject({ state: 'sleeping', stoppedReason: 'idle' })
    expect(named(body, 'web').state).toBe('running')
    expect(named(body, 'job')).toMatchObject({ state: 'stopped', stoppedReason: 'user' })
    expect(body.copied).toEqual({ db: 'disk', web: 'disk', job: 'disk' })
    expect([(await as.get(web.id)).state, (await as.get(db.id)).state]).toEqual(['running', 'sleeping'])
  })

  it('skips units that failed to be created, and lists them', async () => {
    await makeShop()
    service.engine.fail('start', 'start_failed')
    await as.call('POST', '/v1/units', { spec: { name: 'bad', image: 'node:22' }, stack: 'shop' })
    const { body } = await as.forkStack('shop', { into: 'trial' })
    expect(body.skipped).toEqual(['bad: it could not be created'])
    expect(Object.keys(body.copied).toSorted()).toEqual(['db', 'web'])
  })

  it('is refused for a stack without units, and leaves no new stack', async () => {
    await as.call('POST', '/v1/stacks', { name: 'empty' })
    expect(await as.forkStack('empty', { into: 'trial' })).toMatchObject({
      status: 409,
      body: { error: { code: 'invalid_state', details: { skipped: [] } } },
    })
    expect((await as.call('GET', '/v1/stacks/trial')).status).toBe(404)
  })

  it('is refused with 403 for another team, and with 404 for an unknown stack', async () => {
    const { web } = await makeShop()
    const { key } = await makeTeam(service)
    expect((await as.forkStack(web.stackId, {}, key)).status).toBe(403)
    expect((await as.forkStack('shop', {}, key)).status).toBe(404)
  })
})

it('a fork has one audit row, with its source as the target', async () => {
  const source = await as.create('web', {}, { stack: 'shop' })
  await as.fork(source.id, { name: 'copy', sleep: '5m' })
  await as.forkStack('shop', { into: 'trial' })
  const rows = await service.app.db
    .selectFrom('audit')
    .select(['action', 'target', 'status', 'input'])
    .where('team_id', '=', team.teamId)
    .where('action', 'like', '%.fork')
    .orderBy('id')
    .execute()
  expect(rows).toMatchObject([
    { action: 'unit.fork', target: source.id, status: 201, input: { name: 'copy', sleep: '5m' } },
    { action: 'stack.fork', target: 'shop', status: 201, input: { into: 'trial' } },
  ])
})
