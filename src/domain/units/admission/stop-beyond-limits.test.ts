// Daily caps, credits and a lowered concurrency (spec 2.8, 3; reliability B5, B6): what they refuse, what they stop,
// and how units wake once they allow it again.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  addKey,
  createTestDomain,
  eventually,
  makeUnit,
  type TestDomain,
} from '../../../../test/support/domain.ts'
import type { App } from '../../../app.ts'
import type { Policy } from '../../../contract/policy.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/clock.ts'
import { findBalances } from '../../../store/credits.ts'
import { findSpending } from '../../../store/spending.ts'
import { chargeMeters } from '../../billing/charge.ts'
import { checkSpending } from '../../billing/spending-limits.ts'
import { sizeNanoCentsPerHour } from '../../billing/prices.ts'
import { changeAgent } from '../../agents/change.ts'
import type { Caller } from '../../credentials/caller.ts'
import { grantCredits, grantFreeCredits } from '../../credits/grant.ts'
import { forkUnit } from '../../forks/fork-unit.ts'
import { execInUnit } from '../exec.ts'
import { getUnit } from '../get.ts'
import { enforceLimits } from './stop-beyond-limits.ts'
import { reconcileMachines } from '../reconcile.ts'
import { startUnit } from '../start.ts'
import { stopUnit } from '../stop.ts'

const command = { cmd: ['true'], timeoutMs: SECOND }

let domain: TestDomain
let app: App
beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  // Noon, so that a day ends only where a test wants it.
  const now = domain.clock.now().getTime()
  domain.clock.jump(Math.ceil(now / DAY) * DAY + DAY / 2 - now)
  app = domain.restarted()
  await reconcileMachines(app)
})
afterEach(async () => {
  await domain.app.db.deleteFrom('units').execute()
  await domain.app.db.deleteFrom('heartbeats').execute()
  await domain.engine.recover([])
})
afterAll(async () => await domain.close())

/** Runs the jobs while this time passes. */
async function pass(ms: number, stepMs = ms): Promise<void> {
  for (let leftMs = ms; leftMs > 0; leftMs -= stepMs) {
    domain.clock.advance(Math.min(leftMs, stepMs))
    await reconcileMachines(app)
    await chargeMeters(app)
    await enforceLimits(app)
  }
}
const refusal = async (work: Promise<unknown>) =>
  await work.then(
    () => null,
    ({ code, status, message }: { code: string; status: number; message: string }) => ({
      code,
      status,
      message,
    }),
  )
const standing = async (caller: Caller, id: string) => {
  const { state, stoppedReason } = await getUnit(app, caller, id)
  return { state, stoppedReason }
}
const spentToday = async ({ teamId, credentialId }: Caller) => {
  const moment = { now: app.clock.now(), sizePrices: sizeNanoCentsPerHour }
  return Number((await findSpending(app.db, { teamId, credentialId, ...moment })).spentToday) / 1e9
}
const makeCaller = async (policy: Partial<Policy>) => await domain.makeCaller(policy)

describe('a daily cap', () => {
  it('of zero refuses every create, and tells what was spent and when the day ends', async () => {
    const caller = await makeCaller({ dailySpendCapCents: 0 })
    expect(await refusal(makeUnit(app, caller))).toEqual({
      code: 'quota_exceeded',
      status: 402,
      message: expect.stringMatching(
        /may spend 0 euro cents a day and has spent 0 euro cents today; it may spend again from .*T00:00:00.000Z/,
      ),
    })
  })

  it('of one cent stops a unit after two hours, and lets it wake the next day', async () => {
    const caller = await makeCaller({ dailySpendCapCents: 1 })
    const { id } = await makeUnit(app, caller, { sleep: '1d' })
    await pass(2 * HOUR - MINUTE, 10 * MINUTE)
    expect(await standing(caller, id)).toEqual({ state: 'running', stoppedReason: null })
    await pass(MINUTE, 5 * SECOND)
    await eventually(app, caller, id, 'stopped')
    expect(await standing(caller, id)).toEqual({ state: 'stopped', stoppedReason: 'cap' })
    expect((await getUnit(app, caller, id)).costCentsSoFar).toBeLessThanOrEqual(1)
    expect((await getUnit(app, caller, id)).costCentsSoFar).toBeGreaterThan(0.99)

    expect(await refusal(execInUnit(app, caller, id, command))).toMatchObject({
      code: 'invalid_state',
      message: expect.stringContaining('daily spend'),
    })
    expect(await refusal(startUnit(app, caller, id))).toMatchObject({ code: 'invalid_state' })
    expect(await refusal(makeUnit(app, caller, { name: 'another' }))).toMatchObject({
      code: 'quota_exceeded',
    })
    await pass(HOUR)
    expect((await standing(caller, id)).state).toBe('stopped')

    await pass(10 * HOUR)
    expect(await standing(caller, id)).toEqual({ state: 'sleeping', stoppedReason: 'cap' })
    await execInUnit(app, caller, id, command)
    expect(await standing(caller, id)).toEqual({ state: 'running', stoppedReason: null })
    expect(await spentToday(caller)).toBeLessThan(0.01)
  })

  it('stops twenty concurrent units before it is exceeded', async () => {
    const caller = await makeCaller({ dailySpendCapCents: 2, allowedSizes: ['small'] })
    const units = await Promise.all(
      Array.from({ length: 20 }, (_, n) => makeUnit(app, caller, { name: `u${n}`, sleep: 'never' })),
    )
    await pass(11 * MINUTE)
    await pass(2 * MINUTE, 5 * SECOND)
    for (const { id } of units) {
      await eventually(app, caller, id, 'stopped')
      expect(await standing(caller, id)).toEqual({ state: 'stopped', stoppedReason: 'cap' })
    }
    expect(await spentToday(caller)).toBeLessThanOrEqual(2)
    expect(await spentToday(caller)).toBeGreaterThan(1.9)
  }, 60_000)

  it('applies to its credential only, and not to another key of the team', async () => {
    const caller = await makeCaller({ dailySpendCapCents: 0 })
    const other = await addKey(app, caller, { dailySpendCapCents: 1 })
    const { id } = await makeUnit(app, other, { sleep: 'never' })
    await stopUnit(app, caller, id)
    expect(await refusal(startUnit(app, caller, id))).toMatchObject({ code: 'quota_exceeded' })
    await startUnit(app, other, id)
    expect(await refusal(forkUnit(app, caller, id, { wait: true, waitTimeoutMs: 1000 }))).toMatchObject({
      code: 'quota_exceeded',
    })
  })

  it('that is raised lets its units wake at once', async () => {
    const caller = await makeCaller({ dailySpendCapCents: 1 })
    const { id } = await makeUnit(app, caller, { sleep: '1d' })
    await pass(3 * HOUR)
    await eventually(app, caller, id, 'stopped')
    const person = { ...caller, kind: 'session' as const }
    await changeAgent(app, person, {
      noun: 'key',
      id: caller.credentialId,
      change: { policy: { dailySpendCapCents: 10 } },
    })
    await pass(5 * SECOND)
    expect(await standing(caller, id)).toEqual({ state: 'sleeping', stoppedReason: 'cap' })
    await execInUnit(app, { ...caller, policy: { ...caller.policy, dailySpendCapCents: 10 } }, id, command)
  })
})

describe('a lowered concurrency', () => {
  it('stops the newest units above it, which may wake once there is room', async () => {
    const caller = await makeCaller({})
    const units = []
    for (let n = 0; n < 4; n++) units.push(await makeUnit(app, caller, { name: `u${n}`, sleep: 'never' }))
    const person = { ...caller, kind: 'session' as const }
    await changeAgent(app, person, {
      noun: 'key',
      id: caller.credentialId,
      change: { policy: { maxConcurrentUnits: 2 } },
    })
    await pass(5 * SECOND)
    const [first, second, third, fourth] = units.map(({ id }) => id)
    for (const id of [third, fourth]) await eventually(app, caller, id ?? '', 'stopped')
    for (const id of [first, second]) expect((await standing(caller, id ?? '')).state).toBe('running')
    expect(await standing(caller, fourth ?? '')).toEqual({ state: 'stopped', stoppedReason: 'cap' })
    await pass(MINUTE)
    expect((await standing(caller, fourth ?? '')).state).toBe('stopped')
    await stopUnit(app, caller, first ?? '')
    await pass(5 * SECOND)
    expect(await standing(caller, fourth ?? '')).toEqual({ state: 'sleeping', stoppedReason: 'cap' })
  })
})

describe('credits', () => {
  const poor = async (cents: number) => {
    const caller = await makeCaller({})
    await app.db
      .updateTable('teams')
      .set({ pays_as_it_goes: false })
      .where('id', '=', caller.teamId)
      .execute()
    if (cents > 0) await give(caller, cents)
    return caller
  }
  const give = async ({ teamId }: Caller, cents: number) =>
    await grantCredits(app.db, { teamId, cents, note: 'test', at: app.clock.now() })
  const balance = async ({ teamId }: Caller) =>
    Number((await findBalances(app.db, [teamId])).get(teamId)) / 1e9

  it('of zero refuse every create with 402', async () => {
    const caller = await poor(0)
    expect(await refusal(makeUnit(app, caller))).toEqual({
      code: 'payment_required',
      status: 402,
      message: expect.stringContaining('out of credits: 0 euro cents are left'),
    })
  })

  it('below zero by a fraction are shown as zero', async () => {
    const caller = await poor(0)
    const { teamId, credentialId } = caller
    const account = { teamId, credentialId, now: app.clock.now(), sizePrices: sizeNanoCentsPerHour }
    const spending = { ...(await findSpending(app.db, account)), balanceNanoCents: -1n }
    expect(() => checkSpending(spending, 1n, app.clock.now())).toThrow(
      'out of credits: 0 euro cents are left',
    )
  })

  it('that run out stop all units before the balance is negative, and let them wake once topped up', async () => {
    const caller = await poor(1)
    const other = await addKey(app, caller, {})
    const units = await Promise.all(
      [caller, caller, other].map((by, n) =>
        makeUnit(app, by, { name: `u${n}`, size: 'medium', sleep: '1d' }),
      ),
    )
    await pass(13 * MINUTE)
    await pass(MINUTE, 5 * SECOND)
    for (const { id } of units) {
      await eventually(app, caller, id, 'stopped')
      expect(await standing(caller, id)).toEqual({ state: 'stopped', stoppedReason: 'credits' })
    }
    expect(await balance(caller)).toBeGreaterThanOrEqual(0)
    expect(await balance(caller)).toBeLessThan(0.1)
    await pass(DAY)
    expect((await standing(caller, units[0]?.id ?? '')).state).toBe('stopped')
    expect(await refusal(execInUnit(app, caller, units[0]?.id ?? '', command))).toMatchObject({
      code: 'invalid_state',
      message: expect.stringContaining('out of credits'),
    })

    await give(caller, 100)
    await pass(5 * SECOND)
    for (const { id } of units) {
      expect(await standing(caller, id)).toEqual({ state: 'sleeping', stoppedReason: 'credits' })
    }
    await execInUnit(app, caller, units[0]?.id ?? '', command)
    expect((await standing(caller, units[0]?.id ?? '')).state).toBe('running')
    expect((await standing(caller, units[1]?.id ?? '')).state).toBe('sleeping')
  }, 60_000)

  it('may be negative for a team that pays as it goes', async () => {
    const caller = await makeCaller({})
    const { id } = await makeUnit(app, caller, { sleep: 'never' })
    await pass(2 * HOUR)
    expect((await standing(caller, id)).state).toBe('running')
    expect(await balance(caller)).toBeCloseTo(-1, 2)
  })

  it('are free once for each mail address, in any case and with concurrent requests', async () => {
    const callers = await Promise.all(Array.from({ length: 5 }, () => poor(0)))
    const given = await Promise.all(
      callers.map(({ teamId }, n) => {
        const email = n % 2 === 0 ? 'Someone@example.com' : 'someone@Example.com'
        return grantFreeCredits(app.db, { teamId, email, cents: 500, at: app.clock.now() })
      }),
    )
    expect(given.filter(Boolean)).toHaveLength(1)
    const balances = await Promise.all(callers.map(balance))
    expect(balances.filter((cents) => cents !== 0)).toEqual([500])
  })
})
