import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDomain, type TestDomain } from '../../../test/support/domain.ts'
import { AppError } from '../../contract/errors.ts'
import { HOUR, MINUTE, SECOND } from '../../lib/clock.ts'
import { adoptClockJump } from '../time/clock-jumps.ts'
import { forgetAllowances, spendAllowance } from './spend.ts'

let domain: TestDomain
beforeAll(async () => {
  domain = await createTestDomain()
})
afterAll(async () => await domain.close())

/** Returns the seconds to wait, or null when the allowance was granted. */
async function spend(whose: string): Promise<number | null> {
  try {
    await spendAllowance(domain.app, domain.app.db, 'support', whose)
    return null
  } catch (error) {
    if (error instanceof AppError && error.status === 429) return error.retryAfterS
    throw error
  }
}

it('an allowance grants its exact number to concurrent callers, for each account alone', async () => {
  const outcomes = await Promise.all(Array.from({ length: 40 }, (_, index) => spend(`herd ${index % 2}`)))
  expect(outcomes.filter((wait) => wait === null)).toHaveLength(10)
  expect(await spend('somebody else')).toBeNull()
})

it('a refusal says exactly when the next one is granted', async () => {
  for (let minute = 0; minute < 5; minute++) {
    expect(await spend('patient')).toBeNull()
    domain.clock.advance(MINUTE)
  }
  const waitS = (await spend('patient')) ?? 0
  expect(waitS).toBeGreaterThan(4 * 60)
  expect(waitS).toBeLessThanOrEqual(5 * 60)
  domain.clock.advance((waitS - 5) * SECOND)
  expect(await spend('patient')).not.toBeNull()
  domain.clock.advance(5 * SECOND)
  expect(await spend('patient')).toBeNull()
  expect(await spend('patient')).not.toBeNull()
})

it('an allowance neither resets nor locks when the wall clock jumps', async () => {
  for (let time = 0; time < 5; time++) await spend('jumping')
  for (const ms of [5 * HOUR, -10 * HOUR]) {
    domain.clock.jump(ms)
    await adoptClockJump(domain.app)
    const waitS = (await spend('jumping')) ?? 0
    expect(waitS).toBeGreaterThan(9 * 60)
    expect(waitS).toBeLessThanOrEqual(10 * 60)
  }
})

it('an allowance is not spent by a transaction that rolls back', async () => {
  for (let time = 0; time < 7; time++) {
    const failed = domain.app.db.transaction().execute(async (db) => {
      await spendAllowance(domain.app, db, 'support', 'unlucky')
      throw new Error('changed its mind')
    })
    await expect(failed).rejects.toThrow('changed its mind')
  }
  expect(await spend('unlucky')).toBeNull()
})

it('the table of allowances holds no names, and its rows are deleted in time', async () => {
  await spend('ann@example.test')
  const rows = async () => await domain.app.db.selectFrom('allowances').selectAll().execute()
  expect(JSON.stringify(await rows())).not.toContain('ann@')
  domain.clock.advance(2 * HOUR)
  await forgetAllowances(domain.app)
  expect(await rows()).toEqual([])
})
