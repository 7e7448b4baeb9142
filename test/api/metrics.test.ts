// GET /v1/units/{id}/metrics: what a unit uses, once or as a stream, without waking the unit.

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { unitMetricsSchema, type UnitMetrics } from '../../src/contract/metrics.ts'
import { readEvents } from '../support/events.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => await service.close())
beforeEach(async () => {
  team = await makeTeam(service)
})

const metricsOf = async (id: string, key = team.key) =>
  await service.call<UnitMetrics>('GET', `/v1/units/${id}/metrics`, { key })
const stateOf = async (id: string) =>
  (await service.call<{ state: string }>('GET', `/v1/units/${id}`, { key: team.key })).body.state

test('the metrics of a running unit are its use and the limits of its size', async () => {
  const { id } = await makeUnit(service, team, { volume: { mount: '/data', gb: 3 } })
  const { status, body } = await metricsOf(id)
  expect(status).toBe(200)
  expect(unitMetricsSchema.parse(body)).toMatchObject({
    unitId: id,
    state: 'running',
    run: { cpu: { limitCpus: 0.5 }, pids: { limit: 1024 }, memory: { limitBytes: 512 * 1024 ** 2 } },
    disk: { limitBytes: 5 * 1024 ** 3 },
    volume: { limitBytes: 3 * 1024 ** 3 },
  })
})

test('reading the metrics of a sleeping unit neither wakes the unit nor counts as a use', async () => {
  const { id } = await makeUnit(service, team)
  const lastUse = async () =>
    (await service.call<{ lastUsedAt: string }>('GET', `/v1/units/${id}`, { key: team.key })).body.lastUsedAt
  await service.call('POST', `/v1/units/${id}/sleep`, { key: team.key, body: { sleep: '30m', now: true } })
  const used = await lastUse()
  expect(await stateOf(id)).toBe('sleeping')
  const frozen = (await metricsOf(id)).body
  expect(frozen).toMatchObject({ state: 'sleeping', run: { pids: { count: 3 } } })
  expect((await metricsOf(id)).body.run).toEqual(frozen.run)
  expect([await stateOf(id), await lastUse()]).toEqual(['sleeping', used])
})

test('the metrics of a stopped unit are those of its disk only', async () => {
  const { id } = await makeUnit(service, team)
  await service.call('POST', `/v1/units/${id}/stop`, { key: team.key })
  expect((await metricsOf(id)).body).toMatchObject({
    state: 'stopped',
    run: null,
    disk: { usedBytes: expect.any(Number) },
  })
})

test('the metrics of a destroyed unit and of another team’s unit are refused', async () => {
  const { id } = await makeUnit(service, team)
  expect((await metricsOf(id, (await makeTeam(service)).key)).status).toBe(403)
  await service.call('DELETE', `/v1/units/${id}`, { key: team.key })
  expect((await metricsOf(id)).status).toBe(409)
})

test('a stream of metrics has a sample at once and more later, one audit row, and ends with its unit', async () => {
  const { id } = await makeUnit(service, team)
  const answer = await service.fetch('GET', `/v1/units/${id}/metrics?follow=true`, { key: team.key })
  const names: unknown[] = []
  for await (const { event } of readEvents(answer)) {
    names.push(event)
    if (names.length === 2) await service.call('DELETE', `/v1/units/${id}`, { key: team.key })
  }
  expect(names).toEqual(['sample', 'sample', 'end'])
  const rows = async () =>
    await service.app.db
      .selectFrom('audit')
      .select(['action', 'status'])
      .where('target', '=', id)
      .where('action', '=', 'unit.metrics')
      .execute()
  // It is written once the stream has ended.
  await expect.poll(rows).toEqual([{ action: 'unit.metrics', status: 200 }])
})
