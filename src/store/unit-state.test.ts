// The compare-and-set of a unit’s state and the meters that change with it, on a real Postgres.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../test/support/domain.ts'
import { getUnit } from '../domain/units/get.ts'
import type { Caller } from '../domain/credentials/caller.ts'
import { changeState, type StateChange } from './unit-state.ts'

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
  opens: [],
  closes: ['compute'],
  endedAt: domain.clock.now(),
  set: {},
  ...rest,
})
const runsOf = async (id: string) =>
  await domain.app.db.selectFrom('meters').selectAll().where('unit_id', '=', id).execute()

describe('a state change', () => {
  it('succeeds for exactly one of twenty concurrent attempts', async () => {
    const { id } = await makeUnit(domain.app, caller)
    const won = await Promise.all(Array.from({ length: 20 }, () => changeState(domain.app.db, change(id))))
    expect(won.filter(Boolean)).toHaveLength(1)
  })

  it('with an outdated revision changes no state and no meters', async () => {
    const { id } = await makeUnit(domain.app, caller)
    for (const revision of [1n, 3n]) {
      const from = { state: 'running', revision } as const
      expect(await changeState(domain.app.db, change(id, { from }))).toBe(false)
      const opens = [{ kind: 'compute', nanoCentsPerHour: 1n } as const]
      const to = { state: 'running', generation: 1, stoppedReason: null, frozen: false } as const
      expect(await changeState(domain.app.db, change(id, { from, to, opens, closes: [] }))).toBe(false)
    }
    expect((await getUnit(domain.app, caller, id)).state).toBe('running')
    expect(await runsOf(id)).toMatchObject([{ ended_at: null, price_nano_cents_per_hour: 500_000_000n }])
  })

  it('from running closes the meter, never before it was opened', async () => {
    const { id } = await makeUnit(domain.app, caller)
    const [run] = await runsOf(id)
    await changeState(domain.app.db, change(id, { endedAt: new Date(0) }))
    expect(await runsOf(id)).toMatchObject([{ ended_at: run?.started_at }])
  })
})
