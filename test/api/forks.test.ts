// POST /v1/units/{id}/fork over HTTP (spec 2.7, 4.2): what a copy is, and what it may be.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Policy } from '../../src/contract/policy.ts'
import type { Stack } from '../../src/contract/stack.ts'
import { createForker, type Forker, only } from '../support/forks.ts'
import { makeKey, makeTeam, type TestTeam } from '../support/make.ts'
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

describe('a fork of a unit', () => {
  it('runs beside its source with the same spec, disk and memory, as a unit of its own', async () => {
    const source = await as.create('web', { ports: [80], size: 'nano', env: { A: '1' }, sleep: '20m' })
    await as.put(source.id, '/data/state', 'kept')
    await as.exec(source.id, 'sh', '-c', 'echo remembered > /dev/shm/state')
    const answer = await as.fork(source.id, { name: 'copy' })
    expect(answer).toMatchObject({
      status: 201,
      body: { copied: { copy: 'memory' }, outputs: {}, stack: 'web', skipped: [] },
    })
    const copy = only(answer.body)
    expect(copy).toMatchObject({
      name: 'copy',
      stackId: source.stackId,
      state: 'running',
      forkedFrom: source.id,
      image: source.image,
      size: 'nano',
      ports: [80],
      env: { A: '1' },
      sleep: '20m',
      sleepsAt: expect.any(String),
      internalHost: 'copy.web.internal',
      stoppedReason: null,
    })
    expect(copy.id).not.toBe(source.id)
    expect(as.machineOf(copy.id)?.address).not.toBe(as.machineOf(source.id)?.address)
    expect(await as.read(copy.id, '/data/state')).toBe('kept')
    expect(await as.exec(copy.id, 'cat', '/dev/shm/state')).toBe('remembered\n')
    expect(answer.body.costLine).toContain('0.25 euro cents an hour while running (nano). Sleeps after 20')
  })

  it('needs no body, and neither does a fork of a stack', async () => {
    const { id, stackId } = await as.create('bare')
    for (const path of [`/v1/units/${id}/fork`, `/v1/stacks/${stackId}/fork`]) {
      expect((await service.call('POST', path, { key: team.key })).status).toBe(201)
    }
  })

  it('is refused in a stack that lacks a unit its environment refers to', async () => {
    const env = { DB: 'postgres://{{unit:db}}', SELF: '{{unit:web}}', NOBODY: '{{unit:nobody}}' }
    const { id } = await as.create('web', { env }, { stack: 'shop' })
    await as.create('db', {}, { stack: 'shop' })
    expect(await as.fork(id, { stack: 'trial' })).toMatchObject({
      status: 400,
      body: { error: { details: [{ path: 'stack', message: expect.stringContaining('{{unit:db}}') }] } },
    })
    expect((await service.call('GET', '/v1/stacks/trial', { key: team.key })).status).toBe(404)
    await as.create('db', {}, { stack: 'trial' })
    expect(only((await as.fork(id, { stack: 'trial' })).body).internalHost).toBe('web.trial.internal')
    expect(await as.fork(id, { name: 'again' })).toMatchObject({ status: 201 })
  })

  it('changes independently of its source', async () => {
    const source = await as.create('web')
    await as.put(source.id, '/data/state', 'before')
    const copy = only((await as.fork(source.id)).body)
    await as.put(source.id, '/data/state', 'of the source')
    await as.put(copy.id, '/data/state', 'of the copy')
    expect(await as.read(source.id, '/data/state')).toBe('of the source')
    expect(await as.read(copy.id, '/data/state')).toBe('of the copy')
    await as.call('DELETE', `/v1/units/${source.id}`)
    expect(await as.read(copy.id, '/data/state')).toBe('of the copy')
  })

  it('reports disk when its memory could not be copied', async () => {
    const source = await as.create('web')
    service.engine.setMemory(false)
    expect((await as.fork(source.id, { name: 'copy' })).body.copied).toEqual({ copy: 'disk' })
  })

  it('reports disk when the copied memory could not be restored', async () => {
    const source = await as.create('web')
    const release = service.engine.hang('fork', { when: 'after' })
    const forking = as.fork(source.id, { name: 'copy' })
    const copyId = async () => (await as.units()).find(({ name }) => name === 'copy')?.id ?? ''
    await expect.poll(async () => as.machineOf(await copyId())).toBeDefined()
    service.engine.setMemory(false)
    release()
    expect((await forking).body).toMatchObject({ copied: { copy: 'disk' }, units: [{ state: 'running' }] })
  })

  it('is started again when it resumes with its memory and is not ready', async () => {
    let sourceId = ''
    service.engine.onExec(({ id, argv: [program] }) => {
      if (program !== 'probe') return null
      const isReady = sourceId === '' || id === sourceId || as.machineOf(id)?.generation === 2
      return { exitCode: isReady ? 0 : 1 }
    })
    const healthcheck = { cmd: ['probe'], intervalMs: 500, timeoutMs: 60_000 }
    sourceId = (await as.create('web', { healthcheck })).id
    const ticking = setInterval(() => service.clock.advance(1000), 5)
    const { body } = await as.fork(sourceId, { name: 'copy' }).finally(() => clearInterval(ticking))
    expect(body).toMatchObject({ copied: { copy: 'disk' }, units: [{ state: 'running' }] })
    expect(as.machineOf(only(body).id)?.generation).toBe(2)
  })

  it.each([
    ['asleep and frozen', 'sleeping', async (id: string) => await as.putToSleep(id)],
    ['asleep and cold', 'sleeping', hibernate],
    ['stopped', 'stopped', async (id: string) => await as.call('POST', `/v1/units/${id}/stop`)],
  ])('of one that is %s is %s, and wakes neither', async (_name, state, bring) => {
    const source = await as.create('web')
    await as.put(source.id, '/data/state', 'kept')
    await bring(source.id)
    const before = await as.get(source.id)
    const startsBefore = service.engine.calls.filter(({ operation }) => operation === 'start').length
    const { status, body } = await as.fork(source.id, { name: 'copy' })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      copied: { copy: 'disk' },
      units: [{ state, startedAt: null, sleepsAt: null, costCentsSoFar: 0, error: null }],
    })
    expect(only(body).stoppedReason).toBe(state === 'sleeping' ? 'idle' : 'user')
    expect(service.engine.calls.filter(({ operation }) => operation === 'start')).toHaveLength(startsBefore)
    expect(await as.get(source.id)).toEqual(before)
    const { id } = only(body)
    if (state === 'stopped') await as.call('POST', `/v1/units/${id}/start`)
    expect(await as.read(id, '/data/state')).toBe('kept')
    expect(await as.get(source.id)).toMatchObject({ state: before.state })
  })

  it('a fork does not inherit the exit of its source’s process', async () => {
    const source = await as.create('web')
    service.engine.endProcess(source.id, { code: 3 })
    await expect.poll(async () => (await as.get(source.id)).stoppedReason).toBe('exited')
    const { body } = await as.fork(source.id)
    expect(only(body)).toMatchObject({ state: 'stopped', stoppedReason: 'user', lastExit: null })
  })

  it('can be forked again', async () => {
    const source = await as.create('web')
    const first = only((await as.fork(source.id)).body)
    const second = only((await as.fork(first.id)).body)
    expect(second.forkedFrom).toBe(first.id)
    expect(await as.read(second.id, '/run/berth/fork-generation')).toBe('2\n')
  })

  it('makes ten copies for ten concurrent requests', async () => {
    const source = await as.create('web')
    const answers = await Promise.all(Array.from({ length: 10 }, () => as.fork(source.id)))
    expect(answers.map(({ status }) => status)).toEqual(Array<number>(10).fill(201))
    const names = answers.map(({ body }) => only(body).name)
    expect(new Set(names).size).toBe(10)
    expect((await as.units()).filter(({ state }) => state === 'running')).toHaveLength(11)
  })

  it('waits for a source in a transitional state', async () => {
    const source = await as.create('web')
    const release = service.engine.hang('freeze')
    const sleeping = as.putToSleep(source.id)
    await expect.poll(async () => (await as.get(source.id)).state).toBe('stopping')
    const forking = as.fork(source.id)
    release()
    await sleeping
    expect(only((await forking).body).state).toBe('sleeping')
  })

  it('is refused for a destroyed, failed, foreign or unknown unit', async () => {
    const source = await as.create('web')
    await as.call('DELETE', `/v1/units/${source.id}`)
    expect(await as.fork(source.id)).toMatchObject({
      status: 409,
      body: { error: { code: 'invalid_state' } },
    })
    service.engine.fail('start', 'start_failed')
    const body = { spec: { name: 'bad', image: 'node:22' } }
    const failed = await as.call('POST', '/v1/units', body)
    const { unitId } = failed.body.error.details
    expect(await as.fork(String(unitId))).toMatchObject({ status: 409 })
    const other = await makeTeam(service)
    expect((await as.fork(source.id, {}, other.key)).status).toBe(403)
    expect((await as.fork('unit_nowhere')).status).toBe(404)
  })

  it.each([
    [{ sleep: 30 }, 'sleep: must be a string such as "30m", not the number 30'],
    [{ name: 'Web' }, 'name: must be'],
    [{ stack: '' }, 'stack: must be'],
    [{ into: 'copy' }, 'the fields here are name, stack, env, sleep, metadata, timeToLive, atEnd, wait'],
    [{ waitTimeoutMs: 300_001 }, 'waitTimeoutMs'],
  ])('with the body %j is refused, and the error says what to send', async (body, message) => {
    const source = await as.create('web')
    const answer = await as.fork(source.id, body)
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'validation' } } })
    expect(answer.body.error.message).toContain(message)
    expect(await as.units()).toHaveLength(1)
  })
})

/** From frozen to stopped. */
async function hibernate(id: string): Promise<void> {
  await as.putToSleep(id)
  service.clock.advance((service.app.config.frozenForMs ?? 0) + 10_000)
  await expect.poll(() => as.machineOf(id)?.state).toBe('exited')
}

describe('the name and stack of a fork', () => {
  it('are derived from its source by default', async () => {
    const source = await as.create('web', {}, { stack: 'shop' })
    const first = only((await as.fork(source.id)).body)
    expect(first).toMatchObject({ name: expect.stringMatching(/^web-[0-9a-f]{6}$/), stackId: source.stackId })
    const { body } = await as.fork(source.id, { stack: 'trial' })
    expect(body).toMatchObject({ stack: 'trial', units: [{ name: 'web' }] })
    const long = await as.create('w'.repeat(32))
    expect(only((await as.fork(long.id)).body).name).toMatch(/^w{25}-[0-9a-f]{6}$/)
  })

  it('must not be taken', async () => {
    const source = await as.create('web', {}, { stack: 'shop' })
    await as.create('db', {}, { stack: 'shop' })
    expect(await as.fork(source.id, { name: 'db' })).toMatchObject({
      status: 409,
      body: { error: { code: 'conflict' } },
    })
    expect((await as.fork(source.id, { name: 'db', stack: 'other' })).status).toBe(201)
    expect(await as.units()).toHaveLength(3)
  })

  it('are given to only one of several concurrent requests', async () => {
    const source = await as.create('web')
    const answers = await Promise.all([1, 2, 3].map(() => as.fork(source.id, { name: 'copy' })))
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409, 409])
  })
})

describe('the sleep window of a fork', () => {
  it('is the requested one, or that of its source', async () => {
    const source = await as.create('web', { sleep: '25m' })
    expect(only((await as.fork(source.id)).body).sleep).toBe('25m')
    expect(only((await as.fork(source.id, { sleep: '5m' })).body).sleep).toBe('5m')
    expect((await as.get(source.id)).sleep).toBe('25m')
  })

  it('is that of a stack that sleeps together, unless another is requested', async () => {
    const source = await as.create('web', {}, { stack: 'shop' })
    await as.call('POST', `/v1/units/${source.id}/sleep`, { sleep: '15m', stack: true })
    const same = only((await as.fork(source.id)).body)
    const own = only((await as.fork(source.id, { sleep: '5m' })).body)
    await as.putToSleep(source.id, { sleep: '15m', stack: true })
    expect((await as.get(same.id)).state).toBe('sleeping')
    await as.call('POST', `/v1/units/${own.id}/sleep`, { sleep: '5m' })
    const { body } = await as.call<{ stacks: Stack[] }>('GET', '/v1/stacks')
    expect(body.stacks[0]?.units.map(({ sleep }) => sleep)).toEqual(['15m', '15m', '5m'])
  })

  it('of a running source is extended, because a fork counts as a use', async () => {
    const source = await as.create('web')
    const before = await as.get(source.id)
    service.clock.advance(60_000)
    await as.fork(source.id)
    const after = await as.get(source.id)
    expect(Date.parse(after.lastUsedAt ?? '') - Date.parse(before.lastUsedAt ?? '')).toBeGreaterThanOrEqual(
      60_000,
    )
    expect(Date.parse(after.sleepsAt ?? '')).toBeGreaterThan(Date.parse(before.sleepsAt ?? ''))
  })
})

describe('the policy of a key bounds its forks as it bounds its creates (reliability S13)', () => {
  it.each([
    ['size', { allowedSizes: ['nano'] }, {}],
    ['registry', { allowedRegistries: ['ghcr.io'] }, {}],
    ['sleep that is inherited', { maxSleep: '10m' }, {}],
    ['sleep that is asked for', { maxSleep: '1h' }, { sleep: '2h' }],
  ] satisfies [string, Partial<Policy>, object][])(
    'a %s is refused with 402, for a unit and for a stack',
    async (_name, policy, body) => {
      const source = await as.create('web', { sleep: '30m' }, { stack: 'shop' })
      const { secret } = await makeKeyWith(policy)
      for (const answer of [
        await as.fork(source.id, body, secret),
        await as.forkStack('shop', body, secret),
      ]) {
        expect(answer).toMatchObject({ status: 402, body: { error: { code: 'policy_violation' } } })
      }
      expect(await as.units()).toHaveLength(1)
      expect((await as.call<{ stacks: Stack[] }>('GET', '/v1/stacks')).body.stacks).toHaveLength(1)
    },
  )

  it('a unit that never sleeps is refused with 403 on a plan without that', async () => {
    const source = await as.create('web', { sleep: 'never' }, { stack: 'shop' })
    await service.app.db.updateTable('teams').set({ plan: 'hobby' }).where('id', '=', team.teamId).execute()
    expect((await as.fork(source.id)).status).toBe(403)
    expect((await as.forkStack('shop')).status).toBe(403)
    expect((await as.fork(source.id, { sleep: '30m' })).status).toBe(201)
  })

  it('a fork beyond the concurrency limit is refused with 402, counting all units that will run', async () => {
    await as.create('web', {}, { stack: 'shop' })
    const db = await as.create('db', {}, { stack: 'shop' })
    const { secret } = await makeKeyWith({ maxConcurrentUnits: 1 })
    const refused = await as.forkStack('shop', {}, secret)
    expect(refused).toMatchObject({
      status: 402,
      body: { error: { code: 'quota_exceeded', details: { live: 0, max: 1, asked: 2 } } },
    })
    await as.putToSleep(db.id)
    const { status, body } = await as.forkStack('shop', {}, secret)
    expect(status).toBe(201)
    expect(body.units).toMatchObject([{ state: 'running' }, { state: 'sleeping' }])
    expect((await as.fork(db.id, {}, secret)).status).toBe(201)
    expect((await as.fork(body.units[0]?.id ?? '', {}, secret)).status).toBe(402)
  })
})

async function makeKeyWith(policy: Partial<Policy>) {
  return await makeKey(service, { teamId: team.teamId, userId: team.userId, policy })
}

describe('the secrets of a fork', () => {
  const env = { OWN: { secret: 'own', value: 'given' }, SHARED: { secret: 'shared' } }
  const shared = async (id: string) => await as.exec(id, 'printenv', 'SHARED')

  it('are those of its source in any stack, and in no answer', async () => {
    const source = await as.create('web', { env }, { stack: 'shop' })
    const beside = await as.fork(source.id)
    const elsewhere = await as.fork(source.id, { stack: 'other' })
    const value = await shared(source.id)
    expect(value.trim()).toMatch(/^[\w-]{32}$/)
    for (const { body } of [beside, elsewhere]) {
      const { id } = only(body)
      expect(await as.exec(id, 'printenv', 'OWN')).toBe('given\n')
      expect(await shared(id)).toBe(value)
      expect(JSON.stringify(body)).not.toContain('given')
      expect(JSON.stringify(body)).not.toContain(value.trim())
      expect(only(body).env).toEqual({ OWN: { secret: 'own' }, SHARED: { secret: 'shared' } })
    }
  })

  it('stay those of its source in a stack that has others of the same name', async () => {
    const source = await as.create('web', { env }, { stack: 'shop' })
    const other = await as.create('db', { env: { SHARED: { secret: 'shared' } } }, { stack: 'other' })
    const copy = only((await as.fork(source.id, { stack: 'other' })).body)
    const late = await as.create('late', { env: { SHARED: { secret: 'shared' } } }, { stack: 'other' })
    expect(await shared(copy.id)).toBe(await shared(source.id))
    expect(await shared(late.id)).toBe(await shared(other.id))
    expect(await shared(copy.id)).not.toBe(await shared(other.id))
    const again = only((await as.fork(copy.id, { stack: 'third' })).body)
    expect(await shared(again.id)).toBe(await shared(source.id))
  })

  it('outlive the source', async () => {
    const source = await as.create('web', { env, files: { '/etc/app.conf': 'secret' } })
    const copy = only((await as.fork(source.id, { stack: 'other' })).body)
    const value = await shared(source.id)
    await as.call('DELETE', `/v1/stacks/${source.stackId}`)
    await as.call('POST', `/v1/units/${copy.id}/stop`)
    await as.call('POST', `/v1/units/${copy.id}/start`)
    expect(await shared(copy.id)).toBe(value)
    expect(await as.read(copy.id, '/etc/app.conf')).toBe('secret')
  })
})
