// The compare-and-set and the bill that goes with it, on a real Postgres.

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../test/support/domain.ts'
import { getUnit } from '../domain/units/get.ts'
import type { Caller } from '../domain/credentials/caller.ts'
import { changeState, type StateChange } from './unit-state.ts'
import { findUnit } from './units.ts'

let domain: TestDomain
let caller: Caller
beforeAll(async () => {
  domain = await createTestDomain()
  caller = await domain.makeCaller()
})
afterAll(async () => await domain.close())

const change = (id: string, rest: Partial<StateChange> = {}): StateChange => ({
  id,
  from: { state: 'running', revision: 2n },
  to: { state: 'stopping', generation: 1, stoppedReason: 'user', frozen: false },
  at: domain.clock.now(),
  runAt: domain.clock.now(),
  priceNanoCentsPerHour: 1n,
  set: {},
  ...rest,
})
const runsOf = async (id: string) =>
  await domain.app.db.selectFrom('runs').selectAll().where('unit_id', '=', id).execute()

describe('a change of state', () => {
  it('has one winner of twenty', async () => {
    const { id } = await makeUnit(domain.app, caller)
    const won = await Promise.all(Array.from({ length: 20 }, () => changeState(domain.app.db, change(id))))
    expect(won.filter(Boolean)).toHaveLength(1)
  })

  it('of a unit that has changed since it was read changes nothing, and bills nothing', async () => {
    const { id } = await makeUnit(domain.app, caller)
    for (const revision of [1n, 3n]) {
      const from = { state: 'running', revision } as const
      expect(await changeState(domain.app.db, change(id, { from }))).toBe(false)
      const to = { state: 'running', generation: 1, stoppedReason: null, frozen: false } as const
      expect(await changeState(domain.app.db, change(id, { from, to }))).toBe(false)
    }
    expect((await getUnit(domain.app, caller, id)).state).toBe('running')
    expect(await runsOf(id)).toMatchObject([{ ended_at: null, price_nano_cents_per_hour: 500_000_000n }])
  })

  it('out of running ends the run, never before it began', async () => {
    const { id } = await makeUnit(domain.app, caller)
    const [run] = await runsOf(id)
    await changeState(domain.app.db, change(id, { runAt: new Date(0) }))
    expect(await runsOf(id)).toMatchObject([{ ended_at: run?.started_at }])
  })
})

describe('what a unit has cost', () => {
  it('is the sum of its runs, exact however they are cut', async () => {
    const { id, teamId } = await makeUnit(domain.app, caller)
    const origin = Date.UTC(2026, 0, 1)
    const costOf = async (runs: { ms: number; price: bigint }[]) => {
      await domain.app.db.deleteFrom('runs').where('unit_id', '=', id).execute()
      if (runs.length > 0) {
        await domain.app.db
          .insertInto('runs')
          .values(
            runs.map(({ ms, price }, generation) => ({
              unit_id: id,
              generation,
              team_id: teamId,
              held_by: caller.credentialId,
              size: 'small',
              price_nano_cents_per_hour: price,
              started_at: new Date(origin),
              ended_at: new Date(origin + ms),
            })),
          )
          .execute()
      }
      return (await findUnit(domain.app.db, { teamId, id, now: domain.clock.now() }))?.costNanoCents
    }
    const run = fc.record({
      ms: fc.integer({ min: -1000, max: 400 * 86_400_000 }),
      price: fc.bigInt({ min: 0n, max: 10_000_000_000n }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(run, { maxLength: 20 }), async (runs) => {
        const exact =
          runs.reduce((sum, { ms, price }) => sum + BigInt(Math.max(0, ms)) * price, 0n) / 3_600_000n
        expect(await costOf(runs)).toBe(exact)
      }),
      { numRuns: 50 },
    )
    const seconds = Array.from({ length: 1000 }, () => ({ ms: 1000, price: 250_000_000n }))
    expect(await costOf(seconds)).toBe(await costOf([{ ms: 1_000_000, price: 250_000_000n }]))
  })
})
