// L1 and L2: hundreds of calls to units that sleep or are falling asleep. Each unit wakes once, every call is
// answered, and the work is that of a few calls.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'
import { countStatements } from '../support/statements.ts'

let service: Service
let team: TestTeam

const HERD = 500
const LONG_MS = 30_000

const unitOf = async (id: string, { key } = team) =>
  (await service.call<Unit>('GET', `/v1/units/${id}`, { key })).body
const sleepNow = async (id: string, { stack = false, key = team.key } = {}) => {
  const answer = await service.call('POST', `/v1/units/${id}/sleep`, {
    key,
    body: { sleep: '10m', stack, now: true },
  })
  expect(answer.status).toBe(200)
}
const callsOn = (id: string, operation: string) =>
  service.engine.calls.filter((call) => call.id === id && call.operation === operation).length

/** Makes one of the calls that need a running unit. */
async function use(id: string, which: number, { key } = team): Promise<number> {
  const path = `/v1/units/${id}`
  const calls = [
    () => service.call('POST', `${path}/exec`, { key, body: { cmd: ['true'] } }),
    () => service.call('PUT', `${path}/files?path=/f${which}`, { key, body: 'x' }),
    () => service.call('GET', `${path}/files?path=/etc/hostname`, { key }),
    () => service.call('POST', `${path}/start`, { key }),
  ]
  const call = calls[which % calls.length]
  if (!call) throw new Error('there are calls')
  return (await call()).status
}

const herdOn = (ids: string[]) =>
  Promise.all(Array.from({ length: HERD }, (_, which) => use(ids[which % ids.length] ?? '', which)))

/** Counts the answers with each status. */
function tally(statuses: number[]): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

describe.each([
  { tier: 'frozen', frozenForMs: null, sleeps: 'freeze', wakes: 'thaw' },
  { tier: 'stopped', frozenForMs: 0, sleeps: 'suspend', wakes: 'start' },
] as const)('five hundred concurrent calls wake a $tier', ({ frozenForMs, sleeps, wakes }) => {
  beforeAll(async () => {
    service = await startService({ frozenForMs, commandsAtOnce: HERD })
    team = await makeTeam(service)
  })
  afterEach(() =>
    expect([...service.app.activity.uses.ids(), ...service.app.activity.waiters.ids()]).toEqual([]),
  )
  afterAll(async () => await service.close())

  it(
    'unit once, in one transaction',
    async () => {
      const unit = await makeUnit(service, team)
      await service.call('PUT', `/v1/units/${unit.id}/files?path=/etc/hostname`, { key: team.key, body: 'h' })
      await sleepNow(unit.id)
      const before = callsOn(unit.id, wakes)
      const transactions = countStatements(/^begin/)
      expect(tally(await herdOn([unit.id]))).toEqual({ 200: HERD })
      expect(callsOn(unit.id, wakes)).toBe(before + 1)
      expect(transactions()).toBeLessThan(10)
    },
    LONG_MS,
  )

  it('unit that is just falling asleep', async () => {
    const unit = await makeUnit(service, team)
    await service.call('PUT', `/v1/units/${unit.id}/files?path=/etc/hostname`, { key: team.key, body: 'h' })
    const before = callsOn(unit.id, wakes)
    const release = service.engine.hang(sleeps)
    const asleep = sleepNow(unit.id)
    await expect.poll(async () => (await unitOf(unit.id)).state, { timeout: LONG_MS }).toBe('stopping')
    const herd = herdOn([unit.id])
    await expect.poll(() => service.app.activity.waiters.of(unit.id), { timeout: LONG_MS }).toBe(HERD)
    const statements = countStatements()
    release()
    expect(tally(await herd)).toEqual({ 200: HERD })
    await asleep
    // They are read, recorded as uses and audited together.
    expect(statements()).toBeLessThan(HERD)
    expect(callsOn(unit.id, wakes)).toBe(before + 1)
  })

  it(
    'stack of three units that sleeps together, each of them once',
    async () => {
      const ids: string[] = []
      for (const name of ['db', 'api', 'web']) {
        const body = { spec: { name, image: 'node:22' }, stack: 'together' }
        const answer = await service.call<{ units: Unit[] }>('POST', '/v1/units', { key: team.key, body })
        const id = answer.body.units[0]?.id ?? ''
        await service.call('PUT', `/v1/units/${id}/files?path=/etc/hostname`, { key: team.key, body: 'h' })
        ids.push(id)
      }
      await sleepNow(ids[0] ?? '', { stack: true })
      const before = ids.map((id) => callsOn(id, wakes))
      const from = service.engine.calls.length
      const transactions = countStatements(/^begin/)
      expect(tally(await herdOn(ids))).toEqual({ 200: HERD })
      expect(ids.map((id) => callsOn(id, wakes))).toEqual(before.map((count) => count + 1))
      expect(transactions()).toBeLessThan(15)
      // A cold application finds its database running.
      const order = service.engine.calls.slice(from).filter(({ operation }) => operation === 'start')
      if (wakes === 'start') expect(order.map(({ id }) => id)).toEqual(ids)
    },
    LONG_MS,
  )
})
