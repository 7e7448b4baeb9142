// Spending limits over HTTP (spec 2.8, 3, 7; reliability B5, B6, S12): caps and credits hold for concurrent calls,
// and a unit that a limit stopped says why, and wakes once the limit allows it.

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Quota } from '../../src/contract/quota.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { chargeMeters } from '../../src/domain/billing/charge.ts'
import { enforceLimits } from '../../src/domain/units/admission/stop-beyond-limits.ts'
import { reconcileMachines } from '../../src/domain/units/reconcile.ts'
import { newId } from '../../src/lib/ids.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/lib/clock.ts'
import { findBalances, insertCredit } from '../../src/store/credits.ts'
import { makeKey, makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Answer, type Service, startService } from '../support/service.ts'

let service: Service
beforeAll(async () => {
  // The jobs would stop the units that are to be counted.
  service = await startService({ loops: false })
  await untilNoon()
})
afterAll(async () => await service.close())

/** Runs a heartbeat, up to which costs are certain. */
const beat = async () => await reconcileMachines(service.app)

/** Runs the jobs after this time. */
async function pass(ms: number): Promise<void> {
  service.clock.advance(ms)
  await beat()
  await chargeMeters(service.app)
  await enforceLimits(service.app)
}

const act = async (key: string, id: string, action: string, body?: unknown) =>
  await service.call<Unit>('POST', `/v1/units/${id}/${action}`, { key, body })
const exec = async (key: string, id: string) => await act(key, id, 'exec', { cmd: ['true'] })
const find = async (key: string, id: string) =>
  (await service.call<Unit>('GET', `/v1/units/${id}`, { key })).body

/** The least balance with which a nano unit may run: the price of fifteen seconds (decisions/money.md). */
const RESERVE_OF_NANO = 250_000_000n / 240n

it('fifty concurrent calls start only as many units as the credits of their team pay for (S12)', async () => {
  const AFFORDABLE = 5n
  const team = await makeTeam(service)
  const keys = await Promise.all(Array.from({ length: 3 }, () => makeKey(service, team)))
  const source = await makeUnit(service, team, { size: 'nano', sleep: '2d' })
  const others = await Promise.all(
    Array.from({ length: 25 }, () => makeUnit(service, team, { size: 'nano', sleep: '2d' })),
  )
  const [asleep, stopped] = [others.slice(0, 13), others.slice(13)]
  for (const { id } of asleep) await act(team.key, id, 'sleep', { sleep: '2d', now: true })
  for (const { id } of stopped) await act(team.key, id, 'stop')
  await leaveCredits(team, (1n + AFFORDABLE) * RESERVE_OF_NANO + RESERVE_OF_NANO / 2n)

  const spec = { image: 'node:22', size: 'nano' }
  const calls = [
    ...asleep.map(
      ({ id }) =>
        (key: string) =>
          exec(key, id),
    ),
    ...stopped.map(
      ({ id }) =>
        (key: string) =>
          act(key, id, 'start'),
    ),
    ...Array.from({ length: 13 }, (_, n) => (key: string) => {
      return service.call('POST', '/v1/units', { key, body: { spec: { ...spec, name: `new-${n}` } } })
    }),
    ...Array.from({ length: 12 }, (_, n) => (key: string) => {
      return act(key, source.id, 'fork', { name: `copy-${n}` })
    }),
  ]
  const answers = await Promise.all<Answer>(calls.map((call, n) => call(keys[n % keys.length]?.secret ?? '')))
  const passed = answers.filter(({ status }) => status === 200 || status === 201)
  expect(passed).toHaveLength(Number(AFFORDABLE))
  for (const answer of answers.filter((each) => !passed.includes(each))) {
    expect(answer).toMatchObject({ status: 402, body: { error: { code: 'payment_required' } } })
  }
})

/** Leaves the team this balance, and no overdraft. */
async function leaveCredits({ teamId }: TestTeam, nanoCents: bigint): Promise<void> {
  const { db, clock } = service.app
  await beat()
  await chargeMeters(service.app)
  const has = (await findBalances(db, [teamId])).get(teamId) ?? 0n
  const credit = {
    id: newId('credit'),
    teamId,
    kind: 'granted',
    source: `for ${teamId}`,
    note: null,
  } as const
  await insertCredit(db, { ...credit, nanoCents: nanoCents - has, createdAt: clock.now() })
  await db.updateTable('teams').set({ pays_as_it_goes: false }).where('id', '=', teamId).execute()
}

it('concurrent calls start only as many units as the cap of each of three keys pays for (S12)', async () => {
  const team = await makeTeam(service)
  const policy = { dailySpendCapCents: 1 }
  const keys = await Promise.all(Array.from({ length: 3 }, () => makeKey(service, { ...team, policy })))
  for (const { secret } of keys) {
    const { id } = await makeUnit(service, { key: secret }, { size: 'large', sleep: '2d' })
    await pass(19 * MINUTE - 15 * SECOND)
    await act(secret, id, 'stop')
  }
  await beat()
  await chargeMeters(service.app)
  const spec = { image: 'node:22', size: 'large' }
  const answers = await Promise.all(
    Array.from({ length: 51 }, (_, n) => {
      const key = keys[n % keys.length]?.secret ?? ''
      return service.call('POST', '/v1/units', { key, body: { spec: { ...spec, name: `u${n}` } } })
    }),
  )
  // Of the last 0.0625 cents each large unit needs 0.0125; the first ones have run for a moment longer than was
  // meant.
  const passed = answers.filter(({ status }) => status === 201)
  expect(passed.length).toBeLessThanOrEqual(3 * 5)
  expect(passed.length).toBeGreaterThan(0)
  for (const answer of answers.filter((each) => !passed.includes(each))) {
    expect(answer).toMatchObject({
      status: 402,
      body: { error: { code: 'quota_exceeded', details: { field: 'dailySpend', capCents: 1 } } },
    })
  }
})

it('a unit is stopped by a daily cap of one cent, says why, and wakes on its next use the next day', async () => {
  const team = await makeTeam(service)
  const { secret: key } = await makeKey(service, { ...team, policy: { dailySpendCapCents: 1 } })
  const quota = async () => (await service.call<Quota>('GET', '/v1/quota', { key })).body
  await untilNoon()
  const { id } = await makeUnit(service, { key }, { size: 'nano', sleep: '5d' })
  await pass(4 * HOUR - MINUTE)
  expect((await find(key, id)).state).toBe('running')
  for (let n = 0; n < 12; n++) await pass(5 * SECOND)
  await expect.poll(async () => await find(key, id)).toMatchObject({ state: 'stopped', stoppedReason: 'cap' })
  const { spendToday } = await quota()
  expect(spendToday).toMatchObject({ capCents: 1, resetsAt: expect.stringMatching(/T00:00:00.000Z$/) })
  expect(spendToday.cents).toBeGreaterThan(0.99)
  expect(spendToday.cents).toBeLessThanOrEqual(1)
  expect((await find(key, id)).costCentsSoFar).toBe(spendToday.cents)

  const error = { code: 'invalid_state', message: expect.stringContaining('daily spend') }
  expect(await exec(key, id)).toMatchObject({ status: 409, body: { error } })
  const created = await service.call('POST', '/v1/units', {
    key,
    body: { spec: { image: 'node:22', name: 'more' } },
  })
  expect(created).toMatchObject({ status: 402, body: { error: { code: 'quota_exceeded' } } })

  await pass(new Date(spendToday.resetsAt).getTime() - service.clock.now().getTime() + MINUTE)
  expect(await find(key, id)).toMatchObject({ state: 'sleeping', stoppedReason: 'cap' })
  expect(await exec(key, id)).toMatchObject({ status: 200 })
  expect(await find(key, id)).toMatchObject({ state: 'running', stoppedReason: null })
  expect((await quota()).spendToday.cents).toBeLessThan(0.01)
})

/** Moves to noon, so that the day does not end before a test does. */
async function untilNoon(): Promise<void> {
  const now = service.clock.now().getTime()
  await pass(Math.ceil(now / DAY) * DAY + DAY / 2 - now)
}

it('a lowered concurrency limit stops the newest units above it, which say so', async () => {
  const team = await makeTeam(service)
  const { id: keyId, secret: key } = await makeKey(service, team)
  const units: string[] = []
  for (let n = 0; n < 4; n++) units.push((await makeUnit(service, { key }, { sleep: '2d' })).id)
  const sent = {
    cookie: await makeSession(service, team),
    headers: { origin: service.baseUrl },
    body: { policy: { maxConcurrentUnits: 2 } },
  }
  expect((await service.call('PATCH', `/v1/keys/${keyId}`, sent)).status).toBe(200)
  await pass(5 * SECOND)
  const standing = async () => {
    const found = await Promise.all(units.map((id) => find(key, id)))
    return found.map(({ state, stoppedReason }) => stoppedReason ?? state)
  }
  await expect.poll(standing).toEqual(['running', 'running', 'cap', 'cap'])
  expect(await exec(key, units[3] ?? '')).toMatchObject({
    status: 409,
    body: { error: { code: 'invalid_state' } },
  })
  expect((await act(key, units[0] ?? '', 'stop')).status).toBe(200)
  await pass(5 * SECOND)
  expect(await exec(key, units[3] ?? '')).toMatchObject({ status: 200 })
  expect(await standing()).toEqual(['user', 'running', 'cap', 'running'])
})
