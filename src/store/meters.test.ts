// What is charged equals what was metered, to the nano-cent, under random events (reliability B1, B2, B7, B8). Random
// histories on a real Postgres are compared with an integral computed in whole numbers.

import fc from 'fast-check'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../test/support/domain.ts'
import type { Caller } from '../domain/credentials/caller.ts'
import { saveHeartbeats } from './heartbeats.ts'
import { chargeOpenMeters, type MeterKind, meterKinds } from './meters.ts'
import { moveOpenTimes } from './open-times.ts'
import { changeState } from './unit-state.ts'
import { findUnit } from './units.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

let domain: TestDomain
let caller: Caller
beforeAll(async () => {
  domain = await createTestDomain()
  caller = await domain.makeCaller()
})
afterAll(async () => await domain.close())

type Event =
  | { kind: 'pass' | 'jump'; ms: number }
  | { kind: 'open'; meter: MeterKind; price: bigint }
  | { kind: 'close'; meter: MeterKind; lateMs: number }
  | { kind: 'beat' | 'charge' }
  | { kind: 'charge twice'; isBroken: boolean }

const meter = fc.constantFrom(...meterKinds)
const ms = fc.oneof(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 3 * DAY }))
const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ kind: fc.constant('pass' as const), ms }),
  fc.record({ kind: fc.constant('jump' as const), ms: fc.integer({ min: -2 * DAY, max: 2 * DAY }) }),
  fc.record({
    kind: fc.constant('open' as const),
    meter,
    price: fc.bigInt({ min: 0n, max: 10_000_000_000n }),
  }),
  fc.record({ kind: fc.constant('close' as const), meter, lateMs: fc.oneof(fc.constant(0), fc.nat(HOUR)) }),
  fc.record({ kind: fc.constantFrom('beat' as const, 'charge' as const) }),
  fc.record({ kind: fc.constant('charge twice' as const), isBroken: fc.boolean() }),
)

/** The expected cost, in nano-cents times milliseconds of an hour. */
type Counted = { price: bigint | null; sinceMs: number; chargedMs: number; sum: bigint }

/** One unit of a team. Its state does not matter here. */
class History {
  readonly #id: string
  /** Time of the wall clock, which can be set. */
  #now = Date.UTC(2027, 2, 1)
  #beatAt = this.#now
  readonly #meters = new Map<MeterKind, Counted>(
    meterKinds.map((kind) => [kind, { price: null, sinceMs: 0, chargedMs: 0, sum: 0n }]),
  )
  #shown = 0n

  constructor(id: string) {
    this.#id = id
  }

  get hasCost(): boolean {
    return this.#shown > 0n
  }

  async begin(): Promise<void> {
    await this.#saveHeartbeat()
  }

  async happen(event: Event): Promise<void> {
    switch (event.kind) {
      case 'pass':
        this.#now += event.ms
        break
      case 'jump':
        await this.#jump(event.ms)
        break
      case 'open':
        await this.#open(event.meter, event.price)
        break
      case 'close':
        // A run that has ended was seen alive at every earlier heartbeat (domain/units/reconcile.ts).
        await this.#close(event.meter, Math.max(this.#beatAt, this.#now - event.lateMs))
        break
      case 'beat':
        this.#beatAt = this.#now
        await this.#saveHeartbeat()
        break
      case 'charge':
        await this.#charge()
        break
      case 'charge twice':
        await this.#chargeTwice(event.isBroken)
    }
    await this.#checkCost()
  }

  async #jump(ms: number): Promise<void> {
    const [from, to] = [new Date(this.#now), new Date(this.#now + ms)]
    await moveOpenTimes(domain.app.db, { from, to })
    for (const counted of this.#meters.values()) {
      counted.sinceMs += ms
      counted.chargedMs += ms
    }
    this.#now += ms
    this.#beatAt += ms
    await this.#saveHeartbeat()
  }

  async #open(kind: MeterKind, price: bigint): Promise<void> {
    const counted = this.#of(kind)
    if (counted.price !== null) return
    Object.assign(counted, { price, sinceMs: this.#now, chargedMs: this.#now })
    await this.#change({ opens: [{ kind, nanoCentsPerHour: price }], closes: [], endedAt: this.#now })
  }

  async #close(kind: MeterKind, endedAt: number): Promise<void> {
    const counted = this.#of(kind)
    if (counted.price === null) return
    await this.#change({ opens: [], closes: [kind], endedAt })
    counted.sum += counted.price * BigInt(Math.max(endedAt, counted.chargedMs) - counted.sinceMs)
    counted.price = null
  }

  async #charge(): Promise<void> {
    await chargeOpenMeters(domain.app.db, { now: new Date(this.#now), limit: 1000 })
    for (const counted of this.#meters.values()) {
      counted.chargedMs = Math.max(counted.chargedMs, Math.min(this.#now, this.#beatAt))
    }
  }

  /** Two meter jobs run concurrently; one of them may fail before its commit. */
  async #chargeTwice(isBroken: boolean): Promise<void> {
    await Promise.allSettled([
      this.#charge(),
      domain.app.db.transaction().execute(async (db) => {
        await chargeOpenMeters(db, { now: new Date(this.#now), limit: 1000 })
        if (isBroken) throw new Error('it dies')
      }),
    ])
    // Charge what the failed job had locked.
    await this.#charge()
  }

  async #change(meters: {
    opens: { kind: MeterKind; nanoCentsPerHour: bigint }[]
    closes: MeterKind[]
    endedAt: number
  }): Promise<void> {
    const unit = await this.#unit()
    const changed = await changeState(domain.app.db, {
      ...meters,
      id: this.#id,
      from: unit,
      to: unit,
      at: new Date(this.#now),
      endedAt: new Date(meters.endedAt),
      set: {},
    })
    expect(changed).toBe(true)
  }

  async #saveHeartbeat(): Promise<void> {
    await saveHeartbeats(domain.app.db, [{ id: domain.app.fleet.local().id, at: new Date(this.#beatAt) }], {
      boot: 'boot',
      offsetMs: 0,
    })
  }

  /** The cost equals the metered time that is proven, and never decreases. */
  async #checkCost(): Promise<void> {
    const { costNanoCents } = await this.#unit()
    const owed = meterKinds.map((kind) => {
      const { price, sinceMs, chargedMs, sum } = this.#of(kind)
      const provenMs = Math.max(chargedMs, Math.min(this.#now, this.#beatAt))
      return (sum + (price === null ? 0n : price * BigInt(provenMs - sinceMs))) / BigInt(HOUR)
    })
    expect(costNanoCents).toBe(owed.reduce((sum, each) => sum + each, 0n))
    expect(costNanoCents).toBeGreaterThanOrEqual(this.#shown)
    this.#shown = costNanoCents
  }

  async end(): Promise<void> {
    for (const kind of meterKinds) await this.#close(kind, this.#now)
    await this.#checkCost()
    await this.#checkLedger()
  }

  /** The cost of a unit, its charges, and the sums by day and by team are all equal. */
  async #checkLedger(): Promise<void> {
    const { rows } = await sql<{ charged: bigint; used: bigint; balance: bigint; overlaps: bigint }>`
      select
        (select coalesce(sum(nano_cents), 0)::bigint from charges where unit_id = ${this.#id}) as charged,
        (select coalesce(sum(nano_cents), 0)::bigint from usage_days) as used,
        (select coalesce(sum(nano_cents), 0)::bigint from balances) as balance,
        (select count(*) from charges as one join charges as other using (meter_id)
          where one.from_ms < other.from_ms and one.to_ms > other.from_ms) as overlaps
    `.execute(domain.app.db)
    expect(rows).toEqual([{ charged: this.#shown, used: this.#shown, balance: -this.#shown, overlaps: 0n }])
  }

  #of(kind: MeterKind): Counted {
    const counted = this.#meters.get(kind)
    if (!counted) throw new Error('no such meter')
    return counted
  }

  async #unit() {
    const unit = await findUnit(domain.app.db, {
      teamId: caller.teamId,
      id: this.#id,
      now: new Date(this.#now),
    })
    if (!unit) throw new Error('the unit is gone')
    return unit
  }
}

describe('under random events', () => {
  it('the charges of a unit equal the integral of its prices over time, to the nano-cent', async () => {
    const { id } = await makeUnit(domain.app, caller)
    let charged = 0
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 40 }), async (events) => {
        await sql`truncate meters, charges, usage_days, balances, heartbeats`.execute(domain.app.db)
        const history = new History(id)
        await history.begin()
        for (const event of events) await history.happen(event)
        await history.end()
        if (history.hasCost) charged += 1
      }),
      { numRuns: 100 },
    )
    expect(charged).toBeGreaterThan(30)
  }, 120_000)
})

describe('the fraction of a nano-cent at the end of a run', () => {
  it('is carried over to the next run', async () => {
    const { id } = await makeUnit(domain.app, caller, { name: 'halves' })
    await sql`truncate meters, charges, usage_days, balances, heartbeats`.execute(domain.app.db)
    const history = new History(id)
    await history.begin()
    const meter = 'compute'
    const half: Event[] = [
      { kind: 'open', meter, price: 1n },
      { kind: 'pass', ms: HOUR / 2 },
      { kind: 'beat' },
      { kind: 'charge' },
      { kind: 'close', meter, lateMs: 0 },
    ]
    for (const event of [...half, ...half]) await history.happen(event)
    await history.end()
    const { rows } = await sql`select nano_cents from balances`.execute(domain.app.db)
    expect(rows).toEqual([{ nano_cents: -1n }])
  })
})

describe('charges', () => {
  it('of a million single seconds add up to the charge of the whole period', async () => {
    const { rows } = await sql<{ apart: bigint; together: bigint }>`
      select
        sum(counted(0, 250000000, (second + 1) * 1000) - counted(0, 250000000, second * 1000))::bigint as apart,
        counted(0, 250000000, 1000000000) as together
      from generate_series(0::bigint, 999999) as second
    `.execute(domain.app.db)
    expect(rows).toEqual([{ apart: 69_444_444_444n, together: 69_444_444_444n }])
  })

  it('are split at midnight UTC', async () => {
    const { rows } = await sql<{ day: string; from_ms: bigint; nano_cents: bigint }>`
      select day::text, from_ms, nano_cents
      from charges_between('2027-03-01T22:00:00Z', 0, 3600000, 1000, ${26 * HOUR})
    `.execute(domain.app.db)
    expect(rows).toEqual([
      { day: '2027-03-01', from_ms: 1000n, nano_cents: 7_199_000n },
      { day: '2027-03-02', from_ms: BigInt(2 * HOUR), nano_cents: 86_400_000n },
    ])
  })

  it('cannot be changed or deleted', async () => {
    const { id } = await makeUnit(domain.app, caller, { name: 'once' })
    await saveHeartbeats(
      domain.app.db,
      [{ id: domain.app.fleet.local().id, at: new Date(Date.now() + DAY) }],
      {
        boot: 'boot',
        offsetMs: 0,
      },
    )
    await chargeOpenMeters(domain.app.db, { now: new Date(Date.now() + HOUR), limit: 1000 })
    const charges = domain.app.db.updateTable('charges').set({ nano_cents: 0n }).where('unit_id', '=', id)
    await expect(charges.execute()).rejects.toThrow('charges are only ever added')
    const removed = domain.app.db.deleteFrom('charges').where('unit_id', '=', id)
    await expect(removed.execute()).rejects.toThrow('charges are only ever added')
  })
})
