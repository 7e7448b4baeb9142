// B9 and B10: what counts as a use. For each kind of call on a running and on a sleeping unit: whether it moves
// `sleepsAt`, and whether it wakes the unit.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { MINUTE, SECOND } from '../../src/lib/clock.ts'
import { makeKey, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let other: TestTeam
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  other = await makeTeam(service)
})
afterAll(async () => await service.close())

const settle = async (ms = 30) => await new Promise((resolve) => setTimeout(resolve, ms))
const unitOf = async ({ id }: Unit) =>
  (await service.call<Unit>('GET', `/v1/units/${id}`, { key: team.key })).body
const sleepNow = async ({ id }: Unit, sleep = '10m') => {
  const answer = await service.call('POST', `/v1/units/${id}/sleep`, {
    key: team.key,
    body: { sleep, now: true },
  })
  expect(answer.status).toBe(200)
}

type Kind = { what: string; call: (unit: Unit) => Promise<number> }

const ask = async (method: string, path: string, body?: unknown, key = team.key): Promise<number> =>
  (await service.call(method, path, { key, ...(body === undefined ? {} : { body }) })).status

/** Reads a stream for a moment, and disconnects. */
async function follow(path: string, options: { method?: string; body?: unknown } = {}): Promise<number> {
  const gone = new AbortController()
  const response = await service.fetch(options.method ?? 'GET', path, {
    key: team.key,
    headers: { accept: 'text/event-stream' },
    signal: gone.signal,
    ...(options.body === undefined ? {} : { body: options.body }),
  })
  await settle()
  gone.abort()
  return response.status
}

const at = ({ id }: Unit, rest = '') => `/v1/units/${id}${rest}`
const command = { cmd: ['true'] }

const uses: Kind[] = [
  { what: 'a command', call: (unit) => ask('POST', at(unit, '/exec'), command) },
  {
    what: 'a command whose output is streamed',
    call: (unit) => follow(at(unit, '/exec'), { method: 'POST', body: command }),
  },
  { what: 'a file that is written', call: (unit) => ask('PUT', at(unit, '/files?path=/f'), 'bytes') },
  {
    what: 'a file that is written from base64',
    call: (unit) => ask('POST', at(unit, '/files'), { path: '/f', contentBase64: 'eA==' }),
  },
  { what: 'a file that is read', call: (unit) => ask('GET', at(unit, '/files?path=/f')) },
  { what: 'a start', call: (unit) => ask('POST', at(unit, '/start')) },
  {
    what: 'packets of a sibling',
    call: async ({ id }) => {
      service.engine.sendPackets([id])
      await settle()
      return 200
    },
  },
]

const passive: (Kind & { status: number })[] = [
  { what: 'a read of the unit', status: 200, call: (unit) => ask('GET', at(unit)) },
  { what: 'a list', status: 200, call: () => ask('GET', '/v1/units') },
  { what: 'its logs', status: 200, call: (unit) => ask('GET', at(unit, '/logs')) },
  { what: 'following its logs', status: 200, call: (unit) => follow(at(unit, '/logs?follow=true')) },
  { what: 'the sleep call', status: 200, call: (unit) => ask('POST', at(unit, '/sleep'), { sleep: '10m' }) },
  {
    what: 'a command that is not a list',
    status: 400,
    call: (unit) => ask('POST', at(unit, '/exec'), { cmd: 'true' }),
  },
  { what: 'a file without a path', status: 400, call: (unit) => ask('PUT', at(unit, '/files'), 'bytes') },
  {
    what: 'a command with a wrong key',
    status: 401,
    call: (unit) => ask('POST', at(unit, '/exec'), command, 'wrong'),
  },
  {
    what: 'a command of another team',
    status: 403,
    call: (unit) => ask('POST', at(unit, '/exec'), command, other.key),
  },
  {
    what: 'a start of another team',
    status: 403,
    call: (unit) => ask('POST', at(unit, '/start'), undefined, other.key),
  },
  {
    what: 'a command for an unknown unit',
    status: 404,
    call: () => ask('POST', '/v1/units/unit_0123456789abcdef0123456789abcdef/exec', command),
  },
  { what: 'an unknown path', status: 404, call: (unit) => ask('GET', at(unit, '/nothing')) },
]

async function makeUsedUnit(): Promise<Unit> {
  const unit = await makeUnit(service, team, { sleep: '10m' })
  expect(await ask('PUT', at(unit, '/files?path=/f'), 'bytes')).toBe(200)
  return await unitOf(unit)
}

describe('a call that counts as a use', () => {
  it.each(uses)('($what) moves sleepsAt of a running unit', async ({ call }) => {
    const unit = await makeUsedUnit()
    service.clock.advance(20 * SECOND)
    expect(await call(unit)).toBe(200)
    await expect
      .poll(async () => Date.parse((await unitOf(unit)).sleepsAt ?? ''))
      .toBeGreaterThan(Date.parse(unit.sleepsAt ?? '') + 19 * SECOND)
  })

  it.each(uses)('($what) wakes a sleeping unit', async ({ call }) => {
    const unit = await makeUsedUnit()
    await sleepNow(unit)
    expect(await call(unit)).toBe(200)
    await expect.poll(async () => (await unitOf(unit)).state).toBe('running')
  })
})

describe('a call that does not count as a use', () => {
  it.each(passive)('($what) leaves sleepsAt unchanged', async ({ call, status }) => {
    const unit = await makeUsedUnit()
    service.clock.advance(20 * SECOND)
    expect(await call(unit)).toBe(status)
    await settle()
    expect(await unitOf(unit)).toMatchObject({ sleepsAt: unit.sleepsAt, lastUsedAt: unit.lastUsedAt })
  })

  it.each(passive)('($what) does not wake a sleeping unit', async ({ call, status }) => {
    const unit = await makeUsedUnit()
    await sleepNow(unit)
    expect(await call(unit)).toBe(status)
    await settle()
    expect((await unitOf(unit)).state).toBe('sleeping')
  })

  it('(a command beyond the concurrency limit) does not wake a sleeping unit', async () => {
    const key = await makeKey(service, { ...team, policy: { maxConcurrentUnits: 1 } })
    const unit = await makeUnit(service, { key: key.secret })
    await sleepNow(unit)
    await makeUnit(service, { key: key.secret })
    expect(await ask('POST', at(unit, '/exec'), command, key.secret)).toBe(402)
    expect((await unitOf(unit)).state).toBe('sleeping')
  })

  it('(a healthcheck) runs until a unit is ready, and never again', async () => {
    const unit = await makeUnit(service, team, { healthcheck: { cmd: ['true'], intervalMs: 500 } })
    const probes = () =>
      service.engine.calls.filter(({ id, operation }) => id === unit.id && operation === 'exec').length
    const before = probes()
    service.clock.advance(5 * MINUTE)
    await settle()
    expect(probes()).toBe(before)
    expect(await unitOf(unit)).toMatchObject({ sleepsAt: unit.sleepsAt, lastUsedAt: unit.lastUsedAt })
  })
})

describe('a unit with a long command', () => {
  it('stays awake during the command, and sleeps one window after it', async () => {
    const unit = await makeUnit(service, team, { sleep: '1m' })
    service.engine.onExec(({ id }) => (id === unit.id ? { afterMs: 3 * MINUTE } : null))
    const done = ask('POST', at(unit, '/exec'), { ...command, timeoutMs: 10 * MINUTE })
    const execs = () =>
      service.engine.calls.filter(({ id, operation }) => id === unit.id && operation === 'exec').length
    await expect.poll(execs).toBe(1)
    for (let passedMs = 0; passedMs < 2.8 * MINUTE; passedMs += 12 * SECOND) {
      service.clock.advance(12 * SECOND)
      await settle()
      expect((await unitOf(unit)).state).toBe('running')
    }
    service.clock.advance(MINUTE)
    expect(await done).toBe(200)
    expect((await unitOf(unit)).state).toBe('running')
    service.clock.advance(61 * SECOND)
    await expect.poll(async () => (await unitOf(unit)).state).toBe('sleeping')
  })

  it('keeps the last use across a restart of the engine', async () => {
    const unit = await makeUsedUnit()
    service.clock.advance(2 * MINUTE)
    service.engine.crash()
    await settle(50)
    service.clock.advance(6 * SECOND)
    await settle(50)
    expect((await unitOf(unit)).lastUsedAt).toBe(unit.lastUsedAt)
  })
})
