// Prices, usage, quota and costs in the audit log, over HTTP (spec 4.4, 4.5, 2.12; reliability B1).

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AuditList } from '../../src/contract/audit.ts'
import type { Pricing } from '../../src/contract/pricing.ts'
import type { Quota } from '../../src/contract/quota.ts'
import type { Unit } from '../../src/contract/unit.ts'
import type { Usage } from '../../src/contract/usage.ts'
import { chargeMeters } from '../../src/domain/billing/charge.ts'
import { grantCredits } from '../../src/domain/credits/grant.ts'
import { reconcileMachines } from '../../src/domain/units/reconcile.ts'
import { DAY, HOUR, MINUTE } from '../../src/lib/clock.ts'
import { setHostAway } from '../../src/store/hosts.ts'
import { makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
beforeAll(async () => {
  service = await startService({ loops: false })
  // Ten in the morning in UTC, so that a day ends only where a test wants it.
  const now = service.clock.now().getTime()
  service.clock.advance(Math.ceil(now / DAY) * DAY + 10 * HOUR - now)
})
beforeEach(async () => {
  team = await makeTeam(service)
  await reconcileMachines(service.app)
})
afterAll(async () => await service.close())

async function read<T>(path: string, key = team.key): Promise<T> {
  const { status, body } = await service.call<T>('GET', path, { key })
  expect(status).toBe(200)
  return body
}

/** Advances the clock, with a heartbeat at the end. */
async function pass(ms: number): Promise<void> {
  service.clock.advance(ms)
  await reconcileMachines(service.app)
}

describe('GET /v1/pricing', () => {
  it('lists every size with its resources and price, and the price of a volume', async () => {
    expect(await read<Pricing>('/v1/pricing')).toEqual({
      currency: 'eur',
      sizes: [
        { size: 'nano', vcpu: 0.25, memoryMb: 256, diskGb: 2, centsPerHour: 0.25 },
        { size: 'small', vcpu: 0.5, memoryMb: 512, diskGb: 5, centsPerHour: 0.5 },
        { size: 'medium', vcpu: 1, memoryMb: 2048, diskGb: 10, centsPerHour: 1.5 },
        { size: 'large', vcpu: 2, memoryMb: 4096, diskGb: 20, centsPerHour: 3 },
      ],
      volumeCentsPerGbMonth: 7.2,
      planDiskGb: { hobby: 600, pro: 3000, team: 30_000 },
      freeCreditsOnVerifyCents: 500,
    })
  })
})

describe('GET /v1/usage', () => {
  it('shows cost and seconds by size for each day, charged or not', async () => {
    const unit = await makeUnit(service, team, { size: 'medium', sleep: 'never' })
    await pass(15 * HOUR)
    const before = await read<Usage>('/v1/usage?days=3')
    const [dayBefore, yesterday, today] = before.days
    expect(dayBefore).toMatchObject({ costCents: 0, unitSeconds: { nano: 0, small: 0, medium: 0, large: 0 } })
    expect((yesterday?.unitSeconds.medium ?? 0) / 3600).toBeCloseTo(14, 1)
    expect((today?.unitSeconds.medium ?? 0) / 3600).toBeCloseTo(1, 1)
    expect(yesterday?.costCents).toBeCloseTo(21, 1)
    expect(today?.costCents).toBeCloseTo(1.5, 1)
    expect(today?.date).toBe(service.clock.now().toISOString().slice(0, 10))

    await chargeMeters(service.app)
    expect(await read<Usage>('/v1/usage?days=3')).toEqual(before)
    const { costCentsSoFar } = await read<Unit>(`/v1/units/${unit.id}`)
    expect(before.totalCents).toBe(costCentsSoFar)
    expect((yesterday?.costCents ?? 0) + (today?.costCents ?? 0)).toBeCloseTo(costCentsSoFar, 9)
    await service.call('DELETE', `/v1/units/${unit.id}`, { key: team.key })
    service.clock.advance(9 * HOUR)
  })

  it('returns fourteen days by default, of the caller’s team only', async () => {
    const other = await makeTeam(service)
    await makeUnit(service, other)
    await pass(HOUR)
    const { days, totalCents } = await read<Usage>('/v1/usage')
    expect(days).toHaveLength(14)
    expect(totalCents).toBe(0)
  })

  it.each(['0', '367', '-1', '1.5', 'all'])('refuses days=%s', async (days) => {
    expect((await service.call('GET', `/v1/usage?days=${days}`, { key: team.key })).status).toBe(400)
  })
})

describe('a volume', () => {
  it('costs from its creation until the unit is destroyed, awake or asleep', async () => {
    const spec = { volume: { mount: '/data', gb: 100 }, sleep: 'never' }
    const { id } = await makeUnit(service, team, spec)
    const { key } = team
    const cost = async () => (await read<Unit>(`/v1/units/${id}`)).costCentsSoFar
    await pass(HOUR)
    expect(await cost()).toBeCloseTo(0.5 + 1, 2)
    await service.call('POST', `/v1/units/${id}/stop`, { key })
    await pass(2 * HOUR)
    expect(await cost()).toBeCloseTo(0.5 + 3, 2)
    await service.call('DELETE', `/v1/units/${id}`, { key })
    const last = await cost()
    await pass(HOUR)
    expect(await cost()).toBe(last)
    expect((await read<Usage>('/v1/usage?days=1')).totalCents).toBe(last)
  })
})

describe('GET /v1/quota', () => {
  it('shows what the key may still spend and run', async () => {
    const policy = {
      maxConcurrentUnits: 3,
      dailySpendCapCents: 10,
      allowedSizes: ['nano' as const, 'small' as const],
      allowedRegistries: ['docker.io'],
      maxSleep: '2h',
    }
    team = await makeTeam(service, policy)
    await grantCredits(service.app.db, {
      teamId: team.teamId,
      cents: 100,
      note: 'test',
      at: service.clock.now(),
    })
    await makeUnit(service, team, { sleep: '2h' })
    await pass(HOUR)
    const quota = await read<Quota>('/v1/quota')
    expect(quota).toMatchObject({
      units: { live: 1, max: 3 },
      disk: { promisedGb: 5, maxGb: 30_000 },
      spendToday: { capCents: 10, resetsAt: expect.stringMatching(/T00:00:00.000Z$/) },
      allowedSizes: ['nano', 'small'],
      allowedRegistries: ['docker.io'],
      maxSleep: '2h',
      expiresAt: null,
    })
    expect(quota.spendToday.cents).toBeCloseTo(0.5, 2)
    expect(quota.creditBalanceCents).toBeCloseTo(99.5, 2)
    expect(Date.parse(quota.spendToday.resetsAt)).toBeGreaterThan(service.clock.now().getTime())
  })

  it('counts calls down, and shows when the rate limits are full again', async () => {
    const first = (await read<Quota>('/v1/quota')).rates
    const second = (await read<Quota>('/v1/quota')).rates
    const left = (rates: Quota['rates']) => rates.find(({ name }) => name === 'requests')?.remaining ?? 0
    expect(left(first) - left(second)).toBe(1)
    expect(second.map(({ name }) => name)).toEqual(['requests', 'creations', 'execs'])
    const resetsAt = Date.parse(second[0]?.resetsAt ?? '')
    // Calls count until the quarter of a second that they came in is a minute old (decisions/limits.md).
    expect(resetsAt - service.clock.now().getTime()).toBeLessThanOrEqual(MINUTE + 250)
    expect(resetsAt - service.clock.now().getTime()).toBeGreaterThan(MINUTE / 2)
  })

  it('limits a signed-in person by the team alone', async () => {
    const cookie = await makeSession(service, team)
    const { body } = await service.call<Quota>('GET', '/v1/quota', { cookie })
    expect(body.spendToday).toMatchObject({ cents: 0, capCents: null })
  })
})

describe('the audit log', () => {
  it('records what the unit cost during the call', async () => {
    const { key } = team
    const { id } = await makeUnit(service, { key }, { size: 'medium', sleep: 'never' })
    await pass(HOUR)
    const long = service.call('POST', `/v1/units/${id}/exec`, {
      key,
      body: { cmd: ['sleep', '3600'], timeoutMs: HOUR },
    })
    await expect.poll(() => service.engine.calls.at(-1)?.operation).toBe('exec')
    service.clock.advance(20 * MINUTE)
    service.engine.endProcess(id)
    await long
    await service.call('POST', `/v1/units/${id}/start`, { key })
    const { events } = await read<AuditList>('/v1/audit')
    const costOf = (action: string) => events.find((event) => event.action === action)?.costDeltaCents
    expect(costOf('unit.exec')).toBeCloseTo(0.5, 2)
    expect(costOf('unit.create')).toBeCloseTo(0, 2)
    expect(costOf('unit.start')).toBeCloseTo(0, 2)
  })

  it.each([
    ['is answered while the host of its unit is away', 200],
    ['is refused with 503', 503],
  ])(
    'records of a call that %s what the unit cost until the last heartbeat, as the bill',
    async (_, status) => {
      const { key } = team
      const { id, host } = await makeUnit(service, { key }, { size: 'medium', sleep: 'never' })
      await pass(HOUR)
      const before = await costOfUnit(id, key)
      const called = service.call('POST', `/v1/units/${id}/exec`, {
        key,
        body: { cmd: ['sleep', '3600'], timeoutMs: HOUR },
      })
      await expect.poll(() => service.engine.calls.at(-1)?.operation).toBe('exec')
      await pass(5 * MINUTE)
      service.clock.advance(15 * MINUTE)
      const away = { id: host.id, at: service.clock.now(), reason: null }
      if (status === 503) service.engine.crash()
      else {
        await setHostAway(service.app.db, { ...away, awaySince: away.at })
        service.engine.endProcess(id)
      }
      expect((await called).status).toBe(status)
      await setHostAway(service.app.db, { ...away, awaySince: null })
      const { events } = await read<AuditList>('/v1/audit', key)
      expect(events.find(({ action }) => action === 'unit.exec')).toMatchObject({
        status,
        costDeltaCents: expect.closeTo(0.125, 2),
      })
      expect((await costOfUnit(id, key)) - before).toBeCloseTo(0.125, 2)
    },
  )
})

const costOfUnit = async (id: string, key: string) =>
  (await read<Unit>(`/v1/units/${id}`, key)).costCentsSoFar

describe('a new account', () => {
  it('gets free credits once for its mail address', async () => {
    const email = 'newcomer@example.test'
    const balance = async () => {
      const cookie = await makeSession(service, { email })
      const { body } = await service.call<{ teams: { creditBalanceCents: number }[] }>('GET', '/v1/me', {
        cookie,
      })
      return body.teams.map(({ creditBalanceCents }) => creditBalanceCents)
    }
    expect(await balance()).toEqual([500])
    expect(await balance()).toEqual([500])
  })
})
