// What Berth says that things cost: each unit's meters, charges and `costCentsSoFar`, and the sums of a team.

import type { Pricing } from '../../src/contract/pricing.ts'
import type { Quota } from '../../src/contract/quota.ts'
import type { Unit } from '../../src/contract/unit.ts'
import type { Usage } from '../../src/contract/usage.ts'
import type { MeterKind } from '../../src/store/meters.ts'
import { eventually, type Berth } from '../support/berth.ts'
import { withDatabase } from '../support/host-invariants.ts'

/** Of one unit, in nano-cents of the euro. */
export type Bill = {
  unit: Unit
  shown: bigint
  charged: bigint
  /** By the price list and the meters' times. */
  reckoned: bigint
  /** Of each meter, in their order. */
  meters: { kind: MeterKind; ms: number }[]
}

export type Sums = {
  usage: bigint
  today: bigint
  balance: bigint
  seconds: Usage['days'][number]['unitSeconds']
}

const HOURS_OF_A_MONTH = 720n
const MS_OF_AN_HOUR = 3_600_000n

/** Of all units that there ever were; `volumes` says how many GB each has. */
export async function readBills(berth: Berth, volumes: ReadonlyMap<string, number>): Promise<Bill[]> {
  const { sizes, volumeCentsPerGbMonth } = await get<Pricing>(berth, '/v1/pricing')
  const perGb = toNanoCents(volumeCentsPerGbMonth) / HOURS_OF_A_MONTH
  const { meters, charges } = await withDatabase(await berth.instance(), async (db) => ({
    meters: await db.selectFrom('meters').selectAll().orderBy('id').execute(),
    charges: await db.selectFrom('charges').select(['unit_id', 'nano_cents']).execute(),
  }))
  const ids = new Set([...volumes.keys(), ...meters.map((meter) => meter.unit_id)])
  return await Promise.all(
    [...ids].map(async (id) => {
      const unit = await get<Unit>(berth, `/v1/units/${id}`)
      const own = meters
        .filter((meter) => meter.unit_id === id)
        .map(({ kind, started_at, billed_to }) => ({ kind, ms: billed_to.getTime() - started_at.getTime() }))
      const perHour = {
        compute: toNanoCents(sizes.find(({ size }) => size === unit.size)?.centsPerHour ?? 0),
        volume: perGb * BigInt(volumes.get(id) ?? 0),
      }
      // Rounded down once for all that a unit's machine has run, and once for its volume (decisions/money.md).
      const costOf = (kind: MeterKind) => {
        const ms = own.filter((meter) => meter.kind === kind).reduce((sum, meter) => sum + meter.ms, 0)
        return (perHour[kind] * BigInt(ms)) / MS_OF_AN_HOUR
      }
      return {
        unit,
        shown: toNanoCents(unit.costCentsSoFar),
        charged: charges.reduce((sum, each) => sum + (each.unit_id === id ? each.nano_cents : 0n), 0n),
        reckoned: costOf('compute') + costOf('volume'),
        meters: own,
      }
    }),
  )
}

export async function readSums(berth: Berth): Promise<Sums> {
  const [usage, quota] = await Promise.all([
    get<Usage>(berth, '/v1/usage?days=2'),
    get<Quota>(berth, '/v1/quota'),
  ])
  const secondsOf = (size: keyof Sums['seconds']) =>
    usage.days.reduce((sum, { unitSeconds }) => sum + unitSeconds[size], 0)
  return {
    usage: toNanoCents(usage.totalCents),
    today: toNanoCents(quota.spendToday.cents) - toNanoCents(usage.days.at(-1)?.costCents ?? 0),
    balance: toNanoCents(quota.creditBalanceCents),
    seconds: {
      nano: secondsOf('nano'),
      small: secondsOf('small'),
      medium: secondsOf('medium'),
      large: secondsOf('large'),
    },
  }
}

/** Until it is answered: something may just have been killed. */
async function get<T>(berth: Berth, path: string): Promise<T> {
  return await eventually(async () => {
    const { status, body } = await berth.call<T>('GET', path)
    if (status !== 200) throw new Error(`${path} is answered ${status}`)
    return body
  })
}

/** A number of cents has few enough digits to be exact to the nano-cent. */
function toNanoCents(cents: number): bigint {
  return BigInt(Math.round(cents * 1e9))
}
