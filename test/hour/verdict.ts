// Compares what was seen (stopwatch.ts) with what was billed (bills.ts): each interval with its meter, and all that says
// what things cost with each other, to the nano-cent. Pure.

import type { Size } from '../../src/contract/policy.ts'
import type { MeterKind } from '../../src/store/meters.ts'
import type { Bill, Sums } from './bills.ts'
import type { Interval } from './stopwatch.ts'

export type Verdict = { table: string[]; faults: string[] }

/** What was seen of an interval: in the middle of what is possible, give or take. */
type Seen = { ms: number; unsureMs: number }

type Figures = {
  intervals: number
  seenMs: number
  unsureMs: number
  billedMs: number
  /** The largest difference of one that ended in order. */
  worstMs: number
}
const nothing: Figures = { intervals: 0, seenMs: 0, unsureMs: 0, billedMs: 0, worstMs: 0 }

const WITHIN_MS = 1_000
/**
 * What ended by itself may be found later, and was billed up to the last heartbeat before (decisions/money.md): one every
 * five seconds, and somewhat later where the machine is busy.
 */
const HEARTBEAT_MS = 10_000

export function judge({
  intervals,
  volumes,
  bills,
  before,
  after,
}: {
  intervals: Interval[]
  volumes: ReadonlyMap<string, number>
  bills: Bill[]
  before: Sums
  after: Sums
}): Verdict {
  const faults: string[] = []
  const table = [row('unit', 'size', 'what', 'times', 'seen s', '+/-', 'billed s', 'difference', 'worst')]
  const sums: Record<MeterKind, Figures> = { compute: { ...nothing }, volume: { ...nothing } }
  for (const { unit, meters, shown, charged, reckoned } of bills) {
    for (const kind of ['compute', 'volume'] as const) {
      const own = intervals.filter((each) => each.unitId === unit.id && each.kind === kind)
      if (kind === 'volume' && (volumes.get(unit.id) ?? 0) === 0) continue
      const billed = meters.filter((meter) => meter.kind === kind).map(({ ms }) => ms)
      const found = compare(own, billed)
      faults.push(...found.faults.map((fault) => `${unit.name} (${unit.id}), ${kind}: ${fault}`))
      const figures: Figures = {
        intervals: own.length,
        seenMs: total(own.map((each) => seenOf(each).ms)),
        unsureMs: total(own.map((each) => seenOf(each).unsureMs)),
        billedMs: total(billed),
        worstMs: found.worstMs,
      }
      sums[kind] = added(sums[kind], figures)
      table.push(row(unit.name, unit.size, kind, ...columns(figures)))
    }
    if (shown !== charged || shown !== reckoned)
      faults.push(`${unit.name}: shows ${shown}, was charged ${charged}, by its meters it is ${reckoned}`)
  }
  for (const [kind, sum] of Object.entries(sums)) table.push(row('all', '', kind, ...columns(sum)))
  faults.push(...compareSums(bills, before, after))
  const cost = Number(bills.reduce((sum, { charged }) => sum + charged, 0n)) / 1e9
  table.push(
    `${bills.length} units cost ${cost} cents, by their own account, the ledger, the usage and the quota.`,
  )
  return { table, faults }
}

/** Both in the order in which they began. */
export function compare(seen: Interval[], billed: number[]): { faults: string[]; worstMs: number } {
  const faults: string[] = []
  if (seen.length !== billed.length) faults.push(`seen ${seen.length} times, billed ${billed.length} times`)
  let worstMs = 0
  for (const [index, interval] of seen.entries()) {
    const billedMs = billed[index] ?? 0
    const { ms, unsureMs } = seenOf(interval)
    const isFoundLater = interval.reason === 'exited' || interval.reason === 'provider'
    const roomMs = Math.max(WITHIN_MS, unsureMs)
    const offMs = billedMs - ms
    if (offMs > roomMs || offMs < -roomMs - (isFoundLater ? HEARTBEAT_MS : 0))
      faults.push(
        `number ${index + 1} (${interval.reason ?? 'gone'}) was seen for ${seconds(ms)} s, give or take ` +
          `${seconds(unsureMs)}, and billed for ${seconds(billedMs)} s`,
      )
    if (!isFoundLater && unsureMs <= WITHIN_MS && Math.abs(offMs) > Math.abs(worstMs)) worstMs = offMs
  }
  return { faults, worstMs }
}

function seenOf({ began, ended }: Interval): Seen {
  if (!ended) throw new Error('an interval was not seen to end')
  const least = Math.max(0, ended.after - began.by)
  const most = Math.max(least, ended.by - began.after)
  return { ms: (least + most) / 2, unsureMs: (most - least) / 2 }
}

function compareSums(bills: Bill[], before: Sums, after: Sums): string[] {
  const faults: string[] = []
  const charged = bills.reduce((sum, bill) => sum + bill.charged, 0n)
  const changes = {
    'the usage of both days': after.usage - before.usage,
    'the balance': before.balance - after.balance,
  }
  for (const [what, change] of Object.entries(changes))
    if (change !== charged) faults.push(`${what} changed by ${change}, the ledger says ${charged}`)
  if (after.today !== 0n) faults.push(`quota and usage differ about today by ${after.today}`)
  for (const size of Object.keys(after.seconds) as Size[]) {
    const ran = bills
      .filter(({ unit }) => unit.size === size)
      .flatMap(({ meters }) => meters.filter(({ kind }) => kind === 'compute'))
    const ranMs = total(ran.map(({ ms }) => ms))
    const usedMs = Math.round((after.seconds[size] - before.seconds[size]) * 1000)
    if (ranMs !== usedMs) faults.push(`${size} ran for ${ranMs} ms, the usage says ${usedMs}`)
  }
  return faults
}

function added(one: Figures, other: Figures): Figures {
  return {
    intervals: one.intervals + other.intervals,
    seenMs: one.seenMs + other.seenMs,
    unsureMs: one.unsureMs + other.unsureMs,
    billedMs: one.billedMs + other.billedMs,
    worstMs: Math.abs(one.worstMs) > Math.abs(other.worstMs) ? one.worstMs : other.worstMs,
  }
}

function columns({ intervals, seenMs, unsureMs, billedMs, worstMs }: Figures): (number | string)[] {
  return [intervals, ...[seenMs, unsureMs, billedMs, billedMs - seenMs, worstMs].map(seconds)]
}

function total(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3)
}

function row(unit: string, size: string, kind: string, ...figures: (string | number)[]): string {
  const aligned = figures.map((figure, index) => String(figure).padStart(index === 0 ? 6 : 11))
  return [unit.padEnd(24), size.padEnd(7), kind.padEnd(8), ...aligned].join(' ')
}
