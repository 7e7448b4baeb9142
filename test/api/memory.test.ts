// A unit says before its sleep or fork whether its memory will be kept, and after it whether it was.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { createForker, type Forker, only } from '../support/forks.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let as: Forker

/** `frozenForMs`: null for the default. */
function withService(frozenForMs: number | null): void {
  beforeAll(async () => {
    service = await startService(frozenForMs === null ? {} : { frozenForMs })
    as = createForker(service, () => team.key)
  })
  afterAll(async () => await service.close())
  beforeEach(async () => {
    team = await makeTeam(service)
    service.engine.setMemory(true)
  })
}

async function putToSleep(id: string): Promise<Unit['memory'] | undefined> {
  const { status, body } = await service.call<{ units: Unit[] }>('POST', `/v1/units/${id}/sleep`, {
    key: team.key,
    body: { sleep: '10m', now: true },
  })
  expect(status).toBe(200)
  return body.units[0]?.memory
}

describe('a unit that hibernates at once', () => {
  withService(0)

  it('keeps its memory where possible, and says so before and after', async () => {
    const unit = await as.create('web')
    expect(unit.memory).toEqual({ kept: null, longSleep: 'tried' })
    expect(await putToSleep(unit.id)).toEqual({ kept: true, longSleep: 'tried' })
    expect((await as.units())[0]?.memory.kept).toBe(true)
    await as.exec(unit.id, 'true')
    expect((await as.get(unit.id)).memory).toEqual({ kept: null, longSleep: 'tried' })
  })

  it('loses its memory where its class keeps none, and says so before and after', async () => {
    service.engine.setMemory(false)
    const unit = await as.create('web')
    expect(unit.memory).toEqual({ kept: null, longSleep: 'lost' })
    expect(await putToSleep(unit.id)).toEqual({ kept: false, longSleep: 'lost' })
    const fork = await as.fork(unit.id, { name: 'copy' })
    expect(only(fork.body).memory).toEqual({ kept: false, longSleep: 'lost' })
  })

  it('reports memory as lost after a failed checkpoint, until one succeeds', async () => {
    const unit = await as.create('web')
    service.engine.setMemory(false)
    expect(await putToSleep(unit.id)).toEqual({ kept: false, longSleep: 'lost' })
    service.engine.setMemory(true)
    await as.exec(unit.id, 'true')
    expect((await as.get(unit.id)).memory).toEqual({ kept: null, longSleep: 'lost' })
    expect((await as.create('other')).memory.longSleep).toBe('tried')
    expect(await putToSleep(unit.id)).toEqual({ kept: true, longSleep: 'tried' })
  })

  it('has no memory after the host killed it', async () => {
    const unit = await as.create('web')
    service.engine.killMachine(unit.id)
    await expect.poll(async () => (await as.get(unit.id)).state).toBe('sleeping')
    expect((await as.get(unit.id)).memory).toEqual({ kept: false, longSleep: 'tried' })
  })
})

describe('a unit that sleeps frozen', () => {
  withService(null)

  it('keeps its memory in either class', async () => {
    service.engine.setMemory(false)
    const unit = await as.create('web')
    expect(await putToSleep(unit.id)).toEqual({ kept: true, longSleep: 'lost' })
  })

  it.each([
    [true, { kept: true, longSleep: 'tried' }],
    [false, { kept: false, longSleep: 'lost' }],
  ])('says what became of its memory once it is hibernated (can be kept: %s)', async (can, expected) => {
    service.engine.setMemory(can)
    const unit = await as.create('web')
    await as.call('POST', `/v1/units/${unit.id}/sleep`, { sleep: '10h', now: true })
    await expect
      .poll(async () => {
        service.clock.advance(60_000)
        return as.machineOf(unit.id)?.state
      })
      .toBe('exited')
    await expect.poll(async () => (await as.get(unit.id)).memory).toEqual(expected)
  })

  it('says while it runs whether a fork would copy its memory', async () => {
    for (const [can, copied] of [
      [true, 'memory'],
      [false, 'disk'],
    ] as const) {
      service.engine.setMemory(can)
      const unit = await as.create(`web-${copied}`)
      expect(unit.memory.longSleep).toBe(can ? 'tried' : 'lost')
      const { body } = await as.fork(unit.id, { name: `copy-${copied}` })
      expect(body.copied[`copy-${copied}`]).toBe(copied)
    }
  })
})
