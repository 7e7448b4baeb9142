// F31: a unit whose create failed holds nothing, costs nothing, and is destroyed when it says so (reliability B3).

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createApp } from '../../src/app.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { recover } from '../../src/domain/units/reconcile.ts'
import { HOUR, MINUTE, SECOND } from '../../src/lib/clock.ts'
import { startJobs } from '../../src/jobs.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

type Refused = { error: { code: string; details: { unitId: string } } }

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService({ loops: false })
})
afterAll(async () => await service.close())
beforeEach(async () => {
  team = await makeTeam(service, { maxConcurrentUnits: 1 })
})

const spec = { name: 'web', image: 'node:22', size: 'large' }
const create = async () =>
  await service.call<Refused>('POST', '/v1/units', { key: team.key, body: { spec }, headers: {} })
const call = async (method: string, path: string, body?: unknown) =>
  await service.call<Unit>(method, path, { key: team.key, ...(body === undefined ? {} : { body }) })

async function failToMake(operation: 'pull' | 'create' | 'start'): Promise<string> {
  service.engine.fail(operation, 'start_failed')
  const answer = await create()
  expect(answer).toMatchObject({ status: 502, body: { error: { code: 'provider_error' } } })
  return answer.body.error.details.unitId
}

const machines = (id: string) => service.engine.machines().filter((machine) => machine.id === id)

describe('a unit whose create failed', () => {
  test.each(['pull', 'create', 'start'] as const)('at %s has no machine and costs nothing', async (at) => {
    const id = await failToMake(at)
    expect(machines(id)).toEqual([])
    service.clock.advance(30 * MINUTE)
    const { body } = await call('GET', `/v1/units/${id}`)
    expect(body).toMatchObject({
      state: 'error',
      costCentsSoFar: 0,
      startedAt: null,
      sleepsAt: null,
      error: expect.any(String),
    })
    expect(Date.parse(body.destroysAt ?? '') - Date.parse(body.createdAt)).toBeGreaterThanOrEqual(HOUR)
    const runs = await service.app.db.selectFrom('meters').selectAll().where('unit_id', '=', id).execute()
    expect(runs).toEqual([])
  })

  test('does not count towards the concurrency limit', async () => {
    await failToMake('start')
    const body = { spec: { ...spec, name: 'another' } }
    expect((await call('POST', '/v1/units', body)).status).toBe(201)
  })

  test('can be destroyed, and refuses every other call', async () => {
    const id = await failToMake('start')
    for (const [path, body] of [
      ['exec', { cmd: ['true'] }],
      ['start', undefined],
      ['stop', undefined],
      ['sleep', { sleep: '1m' }],
    ] as const) {
      expect((await call('POST', `/v1/units/${id}/${path}`, body)).status, path).toBe(409)
    }
    expect(await call('DELETE', `/v1/units/${id}`)).toMatchObject({
      status: 200,
      body: { state: 'destroyed', destroysAt: null },
    })
  })

  test('belongs to a stack that can be read and destroyed with it', async () => {
    const id = await failToMake('start')
    const { stackId } = (await call('GET', `/v1/units/${id}`)).body
    const path = `/v1/stacks/${stackId}`
    expect(await call('GET', path)).toMatchObject({ status: 200, body: { id: stackId, units: [{ id }] } })
    expect((await call('DELETE', path)).status).toBe(200)
    expect((await call('GET', `/v1/units/${id}`)).body.state).toBe('destroyed')
    expect((await call('GET', path)).status).toBe(404)
  })

  test('is destroyed at its time, also when the server was down then', async () => {
    const id = await failToMake('start')
    service.clock.advance(HOUR + MINUTE)
    expect((await call('GET', `/v1/units/${id}`)).body.state).toBe('error')
    const next = createApp({ ...service.app, clock: service.clock })
    await recover(next)
    const loops = startJobs(next)
    await expect.poll(async () => (await call('GET', `/v1/units/${id}`)).body.state).toBe('destroyed')
    await loops.stop()
  })

  test('is not destroyed before its time by a restart', async () => {
    const id = await failToMake('start')
    service.clock.advance(59 * MINUTE)
    const next = createApp({ ...service.app, clock: service.clock })
    await recover(next)
    const loops = startJobs(next)
    service.clock.advance(6 * SECOND)
    await new Promise((resolve) => setTimeout(resolve, 100))
    await loops.stop()
    expect((await call('GET', `/v1/units/${id}`)).body.state).toBe('error')
  })

  test('loses a machine that could not be removed at once to the reconciler', async () => {
    service.engine.fail('destroy', 'internal')
    const id = await failToMake('start')
    expect(machines(id)).toHaveLength(1)
    const next = createApp({ ...service.app, clock: service.clock })
    const loops = startJobs(next)
    await expect.poll(() => machines(id)).toEqual([])
    await loops.stop()
    expect((await call('GET', `/v1/units/${id}`)).body).toMatchObject({ state: 'error', costCentsSoFar: 0 })
  })
})
