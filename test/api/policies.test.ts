// Spec 2.8, 5.7, reliability S12 and S13: a policy applies to every way in which a unit comes to run, at every
// instant, in the version that holds when the unit is admitted.

import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Policy } from '../../src/contract/policy.ts'
import { visitUnit } from '../../src/domain/units/activity/visit.ts'
import { DAY } from '../../src/lib/clock.ts'
import { createForker, type Forker, only } from '../support/forks.ts'
import { makeKey, makeSession, makeTeam, type TestTeam } from '../support/make.ts'
import { type Answer, type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
/** Calls with an unrestricted key. */
let as: Forker

beforeAll(async () => {
  service = await startService()
  as = createForker(service, () => team.key)
  await recordLiveUnits()
})
beforeEach(async () => {
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

const keyWith = async (policy: Partial<Policy>) =>
  await makeKey(service, { teamId: team.teamId, userId: team.userId, policy })
const exec = async (id: string, key: string) =>
  await service.call('POST', `/v1/units/${id}/exec`, { key, body: { cmd: ['true'] } })
const start = async (id: string, key: string) => await service.call('POST', `/v1/units/${id}/start`, { key })
const create = async (key: string, spec: object) =>
  await service.call('POST', '/v1/units', { key, body: { spec: { image: 'node:22', ...spec } } })

async function asleep(name: string, spec: object = {}): Promise<string> {
  const { id } = await as.create(name, spec)
  await as.putToSleep(id, 'sleep' in spec ? { sleep: spec.sleep } : {})
  return id
}

async function stopped(name: string, spec: object = {}): Promise<string> {
  const { id } = await as.create(name, spec)
  await as.call('POST', `/v1/units/${id}/stop`)
  return id
}

/** A trigger records with each change of a unit’s state how many units of its credential run then. */
async function recordLiveUnits(): Promise<void> {
  await sql`
    create table live_units (held_by text not null, live integer not null);
    create function note_live_units() returns trigger language plpgsql as $$ begin
      insert into live_units select new.held_by, count(*) from units
      where held_by = new.held_by and state in ('creating', 'starting', 'running', 'stopping')
        and (state <> 'creating' or stopped_reason is null);
      return null;
    end $$;
    create trigger note_live_units after insert or update of state, held_by on units
      for each row execute function note_live_units();
  `.execute(service.app.db)
}

async function mostLive(keyId: string): Promise<number> {
  const query = sql<{ most: number }>`select max(live) as most from live_units where held_by = ${keyId}`
  return (await query.execute(service.app.db)).rows[0]?.most ?? 0
}

describe('fifty concurrent calls that run units (S12)', () => {
  it('never run more units than the policy of their key allows, and the rest is refused', async () => {
    const LIMIT = 5
    const keys = await Promise.all([1, 2, 3].map(() => keyWith({ maxConcurrentUnits: LIMIT })))
    const source = await as.create('source')
    const sleeping = await Promise.all(Array.from({ length: 13 }, (_, n) => asleep(`asleep-${n}`)))
    const still = await Promise.all(Array.from({ length: 12 }, (_, n) => stopped(`stopped-${n}`)))
    const calls = [
      ...sleeping.map((id) => async (key: string) => await exec(id, key)),
      ...still.map((id) => async (key: string) => await start(id, key)),
      ...Array.from({ length: 13 }, (_, n) => async (key: string) => await create(key, { name: `new-${n}` })),
      ...Array.from({ length: 12 }, () => async (key: string) => await as.fork(source.id, {}, key)),
    ]
    const answers = await Promise.all<Answer<unknown>>(
      calls.map(async (call, which) => await call(keys[which % keys.length]?.secret ?? '')),
    )
    const passed = answers.filter(({ status }) => status === 200 || status === 201)
    expect(passed).toHaveLength(keys.length * LIMIT)
    for (const answer of answers.filter((each) => !passed.includes(each))) {
      expect(answer).toMatchObject({
        status: 402,
        body: { error: { code: 'quota_exceeded', details: { field: 'concurrency', max: LIMIT } } },
      })
    }
    for (const { id } of keys) expect(await mostLive(id)).toBe(LIMIT)
  })
})

describe('a key that changes while its call waits for admission (S12)', () => {
  /** Calls while the team is locked, and releases the lock once the change is made. */
  async function changedMeanwhile(
    call: () => Promise<Answer<unknown>>,
    keyId: string,
    change: { method: string; body?: unknown },
  ): Promise<Answer<unknown>> {
    const cookie = await makeSession(service, team)
    const { db } = service.app
    const asking = await db.transaction().execute(async (held) => {
      await sql`select 1 from teams where id = ${team.teamId} for no key update`.execute(held)
      const answer = call()
      await expect.poll(waitingForLocks).toBeGreaterThan(0)
      const headers = { origin: service.baseUrl }
      const changed = await service.call(change.method, `/v1/keys/${keyId}`, {
        cookie,
        headers,
        body: change.body,
      })
      expect(changed.status).toBe(200)
      return { answer }
    })
    return await asking.answer
  }

  async function waitingForLocks(): Promise<number> {
    const query = sql<{ waiting: number }>`
      select count(*)::int as waiting from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'
    `
    return (await query.execute(service.app.db)).rows[0]?.waiting ?? 0
  }

  it.each([
    ['size', { allowedSizes: ['small'] }],
    ['registry', { allowedRegistries: ['ghcr.io'] }],
    ['sleep', { maxSleep: '5m' }],
  ])('is refused when its policy loses a %s', async (field, policy) => {
    const spec = { size: 'nano', sleep: '10m' }
    const source = await stopped('source', spec)
    const resting = await asleep('resting', spec)
    const key = await keyWith({})
    for (const call of [
      () => create(key.secret, { name: 'late', ...spec }),
      () => as.fork(source, {}, key.secret),
      () => start(source, key.secret),
      () => exec(resting, key.secret),
    ]) {
      await service.app.db
        .updateTable('credentials')
        .set({ policy: sql<Policy>`policy - 'maxSleep' - 'allowedSizes' - 'allowedRegistries'` })
        .where('id', '=', key.id)
        .execute()
      const answer = await changedMeanwhile(call, key.id, { method: 'PATCH', body: { policy } })
      expect(answer).toMatchObject({
        status: 402,
        body: { error: { code: 'policy_violation', details: { field } } },
      })
    }
  })

  it('is refused with 401 when it is revoked, and nothing is made', async () => {
    const key = await keyWith({})
    const answer = await changedMeanwhile(() => create(key.secret, { name: 'late' }), key.id, {
      method: 'DELETE',
    })
    expect(answer).toMatchObject({ status: 401, body: { error: { code: 'unauthorized' } } })
    expect(await as.units()).toEqual([])
  })
})

describe('a key may not start or wake what it may not create (S13)', () => {
  it.each([
    ['size', { allowedSizes: ['nano'] as Policy['allowedSizes'] }, ['nano']],
    ['registry', { allowedRegistries: ['ghcr.io'] }, ['ghcr.io']],
    ['sleep', { maxSleep: '5m' }, '5m'],
  ])('because of its %s', async (field, policy, allowed) => {
    const spec = { size: 'small', sleep: '10m' }
    const ids = [await asleep('asleep', spec), await stopped('stopped', spec)]
    const { secret } = await keyWith(policy)
    const made = await create(secret, { name: 'new', ...spec })
    for (const answer of [made, await exec(ids[0] ?? '', secret), await start(ids[1] ?? '', secret)]) {
      expect(answer).toMatchObject({
        status: 402,
        body: { error: { code: 'policy_violation', details: { field, allowed } } },
      })
    }
    expect((await as.units()).map(({ state }) => state)).toEqual(['stopped', 'sleeping'])
  })

  it('unless it sets a shorter sleep window first', async () => {
    const id = await stopped('web', { sleep: '10m' })
    const { secret } = await keyWith({ maxSleep: '5m' })
    const setSleep = async (sleep: string) =>
      (await service.call('POST', `/v1/units/${id}/sleep`, { key: secret, body: { sleep } })).status
    expect([await setSleep('6m'), await setSleep('5m')]).toEqual([402, 200])
    expect((await start(id, secret)).status).toBe(200)
  })

  it('a key may not set a longer sleep window for a whole stack than its policy allows', async () => {
    const { id } = await as.create('web', {}, { stack: 'shop' })
    const { secret } = await keyWith({ maxSleep: '5m' })
    const body = { sleep: '6m', stack: true }
    expect((await service.call('POST', `/v1/units/${id}/sleep`, { key: secret, body })).status).toBe(402)
  })
})

describe('a unit whose key or team got narrower limits', () => {
  it('keeps running, and wakes for visitors', async () => {
    const key = await keyWith({})
    const body = { spec: { name: 'web', image: 'node:22' } }
    const made = await service.call<{ units: { id: string }[] }>('POST', '/v1/units', {
      key: key.secret,
      body,
    })
    const id = made.body.units[0]?.id ?? ''
    await service.app.db
      .updateTable('credentials')
      .set({ policy: sql<Policy>`policy || '{"allowedSizes": [], "allowedRegistries": []}'::jsonb` })
      .where('id', '=', key.id)
      .execute()
    expect((await exec(id, key.secret)).status).toBe(200)
    await as.putToSleep(id)
    expect((await exec(id, key.secret)).status).toBe(402)
    const visited = await visitUnit(service.app, id)
    expect(visited.kind).toBe('running')
  })

  it('that never sleeps keeps running on a plan without `never`, and cannot be forked or started as it is', async () => {
    const { id } = await as.create('web', { sleep: 'never' })
    await service.app.db.updateTable('teams').set({ plan: 'hobby' }).where('id', '=', team.teamId).execute()
    service.clock.advance(DAY)
    expect((await exec(id, team.key)).status).toBe(200)
    const refusals = [await create(team.key, { name: 'new', sleep: 'never' }), await as.fork(id)]
    await as.call('POST', `/v1/units/${id}/stop`)
    refusals.push(await start(id, team.key))
    await as.call('POST', `/v1/units/${id}/sleep`, { sleep: '30m' })
    for (const answer of refusals) {
      expect(answer).toMatchObject({ status: 403, body: { error: { code: 'forbidden' } } })
      expect(JSON.stringify(answer.body)).toContain('30m')
    }
    expect((await start(id, team.key)).status).toBe(200)
    expect(only((await as.fork(id)).body).sleep).toBe('30m')
  })
})
