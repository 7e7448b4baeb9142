// Forks that fail, are repeated, or lose a unit during the fork: all of it or nothing (reliability F23).

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ForkResult } from '../../src/contract/fork.ts'
import type { Stack } from '../../src/contract/stack.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { createForker, type Forker, only } from '../support/forks.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { isReplay, told } from '../support/replay.ts'
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

describe('a fork that fails', () => {
  async function makePair(): Promise<Unit[]> {
    return [await as.create('db', {}, { stack: 'shop' }), await as.create('web', {}, { stack: 'shop' })]
  }

  it.each([
    ['cannot be copied', 'fork', 'host_full'],
    ['cannot be started', 'start', 'start_failed'],
  ] as const)(
    'because one unit %s leaves no copies, and returns 502 with their ids',
    async (_name, operation, kind) => {
      const sources = await makePair()
      service.engine.fail(operation, kind)
      const { status, body } = await as.forkStack('shop', { into: 'trial' })
      expect(status).toBe(502)
      expect(body.error).toMatchObject({ code: 'provider_error', details: { unitIds: expect.any(Array) } })
      const { unitId, unitIds } = body.error.details as { unitId: string; unitIds: string[] }
      expect(unitIds).toContain(unitId)
      for (const id of unitIds) {
        const unit = await as.get(id)
        expect(unit).toMatchObject({ state: 'error', costCentsSoFar: 0, destroysAt: expect.any(String) })
        expect(unit.error).toBeTruthy()
        expect(as.machineOf(id)).toBeUndefined()
      }
      for (const { id } of sources) expect(await as.exec(id, 'echo', 'well')).toBe('well\n')
      // The name of the stack is free again at once.
      expect((await as.call('GET', '/v1/stacks/trial')).status).toBe(404)
      expect((await as.forkStack('shop', { into: 'trial' })).status).toBe(201)
    },
  )

  it('destroys a copy whose process has exited by then', async () => {
    service.engine.setMemory(false)
    const healthcheck = { cmd: ['probe'], intervalMs: 500, timeoutMs: 100_000 }
    await as.create('db', {}, { stack: 'shop' })
    let areSick = false
    service.engine.onExec(({ argv: [program] }) =>
      program === 'probe' ? { exitCode: areSick ? 1 : 0 } : null,
    )
    await as.create('web', { healthcheck }, { stack: 'shop' })
    areSick = true
    const forking = as.forkStack('shop', { into: 'trial' })
    const copyOf = async (name: string) =>
      (await as.units()).find((unit) => unit.name === name && unit.forkedFrom !== null)?.id ?? ''
    await expect.poll(async () => as.machineOf(await copyOf('db'))?.state).toBe('running')
    const ended = await copyOf('db')
    service.engine.endProcess(ended, { code: 1 })
    await expect.poll(async () => (await as.get(ended)).state).toBe('stopped')
    service.clock.advance(100_000)
    const { status, body } = await forking
    expect(status).toBe(502)
    expect(body.error.details['unitIds']).toContain(ended)
    expect(await as.get(ended)).toMatchObject({ state: 'destroyed', costCentsSoFar: 0 })
    expect(as.machineOf(ended)).toBeUndefined()
    expect((await as.get(await copyOf('web'))).error).toContain('healthcheck')
  })

  it('keeps the new stack when the caller has created another unit in it', async () => {
    await makePair()
    const release = service.engine.hang('fork')
    const forking = as.forkStack('shop', { into: 'trial' })
    await expect.poll(async () => (await as.units()).length).toBe(4)
    const other = await as.create('other', {}, { stack: 'trial' })
    service.engine.fail('fork', 'internal', { when: 'after' })
    release()
    expect((await forking).status).toBe(502)
    const { body } = await as.call<Stack>('GET', '/v1/stacks/trial')
    expect(body.units.map(({ name, state }) => `${name} ${state}`).toSorted()).toEqual([
      'db error',
      'other running',
      'web error',
    ])
    expect(body.id).toBe(other.stackId)
  })

  it('deletes the stack that it would have made', async () => {
    const source = await as.create('web', {}, { stack: 'shop' })
    service.engine.fail('fork', 'internal')
    expect((await as.fork(source.id, { stack: 'trial' })).status).toBe(502)
    expect((await as.call('GET', '/v1/stacks/trial')).status).toBe(404)
    expect((await as.fork(source.id, { stack: 'trial' })).status).toBe(201)
  })

  it('leaves an existing target stack unchanged', async () => {
    const source = await as.create('web', {}, { stack: 'shop' })
    service.engine.fail('fork', 'internal')
    expect((await as.fork(source.id, { name: 'copy' })).status).toBe(502)
    const { body } = await as.call<Stack>('GET', '/v1/stacks/shop')
    expect(body.units).toMatchObject([
      { name: 'web', state: 'running' },
      { name: 'copy', state: 'error' },
    ])
  })
})

describe('during a fork', () => {
  it('copies are in creating with their disks, for a caller that does not wait', async () => {
    const source = await as.create('web')
    const release = service.engine.hang('start')
    const { status, body } = await as.fork(source.id, { name: 'copy', wait: false })
    expect(status).toBe(201)
    expect(body).toMatchObject({ copied: { copy: 'disk' }, units: [{ state: 'creating' }] })
    const late = await as.fork(source.id, { name: 'late', waitTimeoutMs: 0 })
    expect(late.body.units).toMatchObject([{ name: 'late' }])
    // The copy may be running by then.
    expect(['disk', 'memory']).toContain(late.body.copied['late'])
    release()
    await expect.poll(async () => (await as.get(only(body).id)).state).toBe('running')
  })

  it('copies report config while the disks are still being copied', async () => {
    const source = await as.create('web')
    const release = service.engine.hang('fork')
    const { body } = await as.fork(source.id, { name: 'slow', wait: false })
    expect(body).toMatchObject({ copied: { slow: 'config' }, units: [{ state: 'creating' }] })
    release()
    await expect.poll(async () => (await as.get(only(body).id)).state).toBe('running')
  })

  it('a copy can be destroyed, and the others complete', async () => {
    await as.create('db', {}, { stack: 'shop' })
    await as.create('web', {}, { stack: 'shop' })
    const release = service.engine.hang('fork')
    const forking = as.forkStack('shop', { into: 'trial' })
    await expect.poll(async () => (await as.units()).length).toBe(4)
    const gone = (await as.units()).find(({ name, forkedFrom }) => name === 'db' && forkedFrom !== null)
    expect((await as.call('DELETE', `/v1/units/${gone?.id}`)).status).toBe(200)
    release()
    const { status, body } = await forking
    expect(status).toBe(201)
    expect(body.units).toMatchObject([
      { name: 'db', state: 'destroyed' },
      { name: 'web', state: 'running' },
    ])
    expect(as.machineOf(gone?.id ?? '')).toBeUndefined()
  })

  it('the target stack can be deleted, and leaves no copies', async () => {
    await as.create('db', {}, { stack: 'shop' })
    const release = service.engine.hang('fork', { when: 'after' })
    const forking = as.forkStack('shop', { into: 'trial' })
    await expect.poll(async () => (await as.units()).length).toBe(2)
    expect((await as.call('DELETE', '/v1/stacks/trial')).status).toBe(200)
    release()
    const { body } = await forking
    expect(body.units).toMatchObject([{ state: 'destroyed' }])
    expect(as.machineOf(only(body).id)).toBeUndefined()
  })
})

describe('a fork whose source is destroyed meanwhile', () => {
  const volume = { volume: { mount: '/data', gb: 1 } }
  const allUnits = async () =>
    (await as.call<{ units: Unit[] }>('GET', '/v1/units?all=true')).body.units.filter(
      ({ forkedFrom }) => forkedFrom !== null,
    )

  /** No copy is listed, billed or on the host. */
  async function expectNothingLeft(copies: number): Promise<void> {
    await expect.poll(as.units).toEqual([])
    const rows = await allUnits()
    expect(rows).toHaveLength(copies)
    for (const row of rows) {
      expect(row).toMatchObject({ state: 'destroyed', costCentsSoFar: 0, destroysAt: null })
      expect(row.error).toContain('"web" was destroyed')
      expect(as.machineOf(row.id)).toBeUndefined()
    }
  }

  it.each([true, false])(
    'is refused with 409 and the name of the source, and leaves nothing (wait: %s)',
    async (wait) => {
      const source = await as.create('web', volume, { stack: 'shop' })
      const release = service.engine.hang('fork')
      const forking = as.fork(source.id, { name: 'copy', stack: 'trial', wait })
      await expect.poll(async () => (await as.units()).length).toBe(2)
      await as.call('DELETE', `/v1/units/${source.id}`)
      release()
      const { status, body } = await forking
      expect(status).toBe(409)
      expect(body.error).toMatchObject({
        code: 'invalid_state',
        message: '"web" was destroyed before it could be copied, so nothing came of its fork.',
        details: { machineState: 'destroyed', unitId: source.id },
      })
      await expectNothingLeft(1)
      await expect.poll(async () => (await as.call('GET', '/v1/stacks/trial')).status).toBe(404)
    },
  )

  it('is refused with 409 also while the destruction is in progress', async () => {
    const source = await as.create('web')
    const release = service.engine.hang('fork')
    service.engine.fail('fork', 'timeout')
    const destruction = service.engine.hang('destroy')
    const forking = as.fork(source.id, { name: 'copy' })
    await expect.poll(async () => (await as.units()).length).toBe(2)
    const destroying = as.call('DELETE', `/v1/units/${source.id}`)
    await expect.poll(async () => (await as.get(source.id)).state).toBe('destroying')
    release()
    const { status, body } = await forking
    expect(status).toBe(409)
    expect(body.error.details).toMatchObject({ machineState: 'destroying', unitId: source.id })
    destruction()
    await destroying
    await expectNothingLeft(1)
  })

  it('completes when the disks have been copied by then', async () => {
    const source = await as.create('web')
    const release = service.engine.hang('start')
    const forking = as.fork(source.id, { name: 'copy' })
    await expect
      .poll(async () => (await allUnits()).map(({ id }) => as.machineOf(id)?.state))
      .toEqual(['created'])
    await as.call('DELETE', `/v1/units/${source.id}`)
    release()
    const { status, body } = await forking
    expect(status).toBe(201)
    expect(only(body)).toMatchObject({ state: 'running', error: null })
  })

  it('removes all copies of a stack when one of its units was destroyed', async () => {
    const db = await as.create('db', volume, { stack: 'shop' })
    const web = await as.create('web', {}, { stack: 'shop' })
    const release = service.engine.hang('fork')
    const forking = as.forkStack('shop', { into: 'trial' })
    await expect.poll(async () => (await as.units()).length).toBe(4)
    await as.call('DELETE', `/v1/units/${web.id}`)
    release()
    const { status, body } = await forking
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('"web" was destroyed')])
    expect(await as.exec(db.id, 'echo', 'well')).toBe('well\n')
    await as.call('DELETE', `/v1/units/${db.id}`)
    await expectNothingLeft(2)
    expect((await as.call('GET', '/v1/stacks/trial')).status).toBe(404)
  })

  it('returns the same answer for a repeated Idempotency-Key', async () => {
    const source = await as.create('web')
    const release = service.engine.hang('fork')
    const options = { key: team.key, body: {}, headers: { 'idempotency-key': 'gone' } }
    const path = `/v1/units/${source.id}/fork`
    const first = service.call<ForkResult>('POST', path, options)
    await expect.poll(async () => (await as.units()).length).toBe(2)
    await as.call('DELETE', `/v1/units/${source.id}`)
    release()
    const second = await service.call<ForkResult>('POST', path, options)
    expect([(await first).status, second.status]).toEqual([409, 409])
    expect(told(second)).toBe(told(await first))
  })
})

describe('a fork that is repeated with its Idempotency-Key', () => {
  const keyed = async (path: string, body: object, as: string) =>
    await service.call<ForkResult>('POST', path, {
      key: team.key,
      body,
      headers: { 'idempotency-key': as },
    })

  it('returns the same answer and makes nothing, for a unit and for a stack', async () => {
    const source = await as.create('web', {}, { stack: 'shop' })
    for (const path of [`/v1/units/${source.id}/fork`, '/v1/stacks/shop/fork']) {
      const first = await keyed(path, {}, path)
      expect(first.status).toBe(201)
      const count = (await as.units()).length
      service.clock.advance(1000)
      const again = await keyed(path, {}, path)
      expect(told(again)).toBe(told(first))
      expect([isReplay(first), isReplay(again)]).toEqual([false, true])
      expect(await as.units()).toHaveLength(count)
      expect((await keyed(path, { sleep: '5m' }, path)).status).toBe(409)
    }
  })

  it('waits for the first call while that is in progress', async () => {
    const source = await as.create('web')
    const path = `/v1/units/${source.id}/fork`
    const release = service.engine.hang('fork')
    const first = keyed(path, {}, 'one')
    await expect.poll(async () => (await as.units()).length).toBe(2)
    const second = keyed(path, {}, 'one')
    release()
    const answers = await Promise.all([first, second])
    expect(answers.map(({ status }) => status)).toEqual([201, 201])
    expect(only(answers[1].body).id).toBe(only(answers[0].body).id)
    expect(await as.units()).toHaveLength(2)
  })

  it('returns the same failure', async () => {
    const source = await as.create('web')
    const path = `/v1/units/${source.id}/fork`
    service.engine.fail('fork', 'internal')
    const first = await keyed(path, {}, 'two')
    expect(first.status).toBe(502)
    expect(told(await keyed(path, {}, 'two'))).toBe(told(first))
    expect(await as.units()).toHaveLength(2)
  })

  it('is carried out when the first call was refused', async () => {
    const source = await as.create('web')
    const path = `/v1/units/${source.id}/fork`
    expect((await keyed(path, { name: 'web' }, 'three')).status).toBe(409)
    await as.call('POST', '/v1/stacks', { name: 'other' })
    expect((await keyed(path, { name: 'web', stack: 'other' }, 'three')).status).toBe(201)
  })
})
