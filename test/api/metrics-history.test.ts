// What a unit used: a day by the minute, a month by the hour. Samples are counters of a run; sleeps are gaps.

import { afterAll, beforeAll, expect, test } from 'vitest'
import type { MetricsHistory, RecentMetrics } from '../../src/contract/metrics-history.ts'
import { hibernateFrozenUnits } from '../../src/domain/units/activity/idle.ts'
import { forgetOldMetrics, recordMetrics } from '../../src/domain/units/metrics-history.ts'
import { DAY, HOUR, MINUTE } from '../../src/lib/clock.ts'
import { addUnitSamples } from '../../src/store/unit-metrics.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service

beforeAll(async () => {
  service = await startService({ loops: false })
})
afterAll(async () => await service.close())

const historyOf = async (team: TestTeam, id: string, range = 'day') =>
  (
    await service.call<MetricsHistory>('GET', `/v1/units/${id}/metrics/history?range=${range}`, {
      key: team.key,
    })
  ).body
const later = async (ms: number) => {
  service.clock.advance(ms)
  await recordMetrics(service.app)
}
const sumOf = ({ points }: MetricsHistory) => points.reduce((sum, { cpuMs }) => sum + cpuMs, 0)

/** The clock goes on by itself while the test runs: ten seconds of it are half a second of processor time. */
function expectNear(value: number | null | undefined, expected: number): void {
  expect(value).toBeGreaterThanOrEqual(expected)
  expect(value).toBeLessThan(expected + 500)
}

async function beginHour(): Promise<TestTeam> {
  service.clock.advance(HOUR - (service.clock.now().getTime() % HOUR))
  return await makeTeam(service)
}

test('each minute of a running unit is a point, and all points together are what it used', async () => {
  const team = await beginHour()
  const { id } = await makeUnit(service, team, { sleep: 'never' })
  await recordMetrics(service.app)
  for (let minute = 0; minute < 5; minute += 1) await later(MINUTE)
  const day = await historyOf(team, id)
  expect(day).toMatchObject({ unitId: id, range: 'day', stepSeconds: 60, limitCpus: 0.5 })
  expect(day.points).toHaveLength(6)
  // The engine in memory uses a twentieth of a processor.
  for (const { cpuMs } of day.points.slice(1)) expectNear(cpuMs, 3000)
  expect(day.points.at(-1)?.receivedBytes).toBeGreaterThanOrEqual(120_000)
  const month = await historyOf(team, id, 'month')
  expect(month.points).toHaveLength(1)
  expect(sumOf(month)).toBe(sumOf(day))
})

test('samples of the same minute are added up, and a sample that is taken twice adds nothing', async () => {
  const team = await beginHour()
  const { id } = await makeUnit(service, team, { sleep: 'never' })
  const { db } = service.app
  const at = service.clock.now()
  const sample = {
    unitId: id,
    generation: 1,
    cpuMs: 400,
    memoryBytes: 2000,
    receivedBytes: 10,
    sentBytes: 20,
  }
  await addUnitSamples(db, { at, samples: [sample] })
  const more = { ...sample, cpuMs: 1000, memoryBytes: 1000, sentBytes: 50 }
  for (let time = 0; time < 2; time += 1) await addUnitSamples(db, { at, samples: [more] })
  const { points } = await historyOf(team, id)
  expect(points).toHaveLength(1)
  expect(points[0]).toMatchObject({ cpuMs: 1000, memoryBytes: 2000, receivedBytes: 10, sentBytes: 50 })
})

test('a sleep is a gap, and the counters of the run go on after it', async () => {
  const team = await beginHour()
  const { id } = await makeUnit(service, team, { sleep: '30m' })
  await recordMetrics(service.app)
  await later(MINUTE)
  await service.call('POST', `/v1/units/${id}/sleep`, { key: team.key, body: { sleep: '30m', now: true } })
  for (let minute = 0; minute < 3; minute += 1) await later(MINUTE)
  expect((await historyOf(team, id)).points).toHaveLength(2)
  await service.call('POST', `/v1/units/${id}/start`, { key: team.key })
  await later(MINUTE)
  const { points } = await historyOf(team, id)
  expect(points.map(({ at }) => new Date(at).getTime() - new Date(points[0]?.at ?? 0).getTime())).toEqual([
    0,
    MINUTE,
    5 * MINUTE,
  ])
  expectNear(points.at(-1)?.cpuMs, 3000)
})

test('a sleep that grows long is a checkpoint, kept or not, for a month; none where memory is never kept', async () => {
  const team = await beginHour()
  const { id } = await makeUnit(service, team, { sleep: '30m' })
  const longSleep = async () => {
    await service.call('POST', `/v1/units/${id}/sleep`, { key: team.key, body: { sleep: '30m', now: true } })
    service.clock.advance((service.app.config.frozenForMs ?? 0) + MINUTE)
    await hibernateFrozenUnits(service.app)
    await service.call('POST', `/v1/units/${id}/start`, { key: team.key })
  }
  await longSleep()
  // What the service knows of its host stays: it tries.
  service.engine.setMemory(false)
  await longSleep()
  const known = service.app.capabilities
  const before = new Map(known)
  for (const [host, { classes: all, ...rest }] of before)
    known.set(host, {
      ...rest,
      classes: all.map((each) => ({ ...each, memory: { available: false, detail: 'none' } })),
    })
  await longSleep()
  const { checkpoints } = await historyOf(team, id)
  expect(checkpoints.map(({ kept }) => kept)).toEqual([true, false])
  expect((await historyOf(team, id, 'month')).checkpoints).toEqual(checkpoints)
  for (const [host, told] of before) known.set(host, told)
  service.engine.setMemory(true)
  service.clock.advance(31 * DAY)
  await forgetOldMetrics(service.app)
  const left = service.app.db.selectFrom('unit_checkpoints').select('at').where('unit_id', '=', id)
  expect(await left.execute()).toEqual([])
})

test('a new run counts from its own beginning', async () => {
  const team = await beginHour()
  const { id } = await makeUnit(service, team, { sleep: 'never' })
  for (let minute = 0; minute < 3; minute += 1) await later(MINUTE)
  await service.call('POST', `/v1/units/${id}/stop`, { key: team.key })
  await service.call('POST', `/v1/units/${id}/start`, { key: team.key })
  await later(MINUTE)
  const { points } = await historyOf(team, id)
  expectNear(points.at(-1)?.cpuMs, 3010)
  expectNear(sumOf(await historyOf(team, id, 'month')), 4 * 3000 + 20)
})

test('minutes are kept for a day and hours for a month', async () => {
  const team = await beginHour()
  const { id } = await makeUnit(service, team, { sleep: 'never' })
  await later(MINUTE)
  const rows = async (step: 'minute' | 'hour') =>
    await service.app.db
      .selectFrom('unit_metrics')
      .select('at')
      .where('unit_id', '=', id)
      .where('step', '=', step)
      .execute()
  await later(DAY + HOUR)
  await forgetOldMetrics(service.app)
  expect([(await rows('minute')).length, (await rows('hour')).length]).toEqual([1, 2])
  await later(30 * DAY)
  await forgetOldMetrics(service.app)
  expect([(await rows('minute')).length, (await rows('hour')).length]).toEqual([1, 1])
})

test('the recent metrics of a team have its units alone, with an hour without a run as null', async () => {
  const team = await beginHour()
  const other = await makeTeam(service)
  const { id } = await makeUnit(service, team, { sleep: 'never' })
  await makeUnit(service, other, { sleep: 'never' })
  await later(MINUTE)
  await later(HOUR)
  const { body } = await service.call<RecentMetrics>('GET', '/v1/metrics/recent', { key: team.key })
  expect(body.units).toHaveLength(1)
  expect(body.units[0]).toMatchObject({ id })
  const cpu = body.units[0]?.cpuMs ?? []
  expect(cpu).toHaveLength(24)
  expect(cpu.slice(0, 22)).toEqual(Array.from({ length: 22 }, () => null))
  expectNear(cpu[22], 3010)
  expectNear(cpu[23], 180_000)
})

test('the history of a unit is hidden from other teams, and an unknown range is refused', async () => {
  const team = await makeTeam(service)
  const stranger = await makeTeam(service)
  const { id } = await makeUnit(service, team)
  const path = `/v1/units/${id}/metrics/history`
  expect((await service.call('GET', path, { key: stranger.key })).status).toBe(403)
  expect((await service.call('GET', `${path}?range=year`, { key: team.key })).status).toBe(400)
})
