// The reference: the cost of units by its own integral over what was seen of them. It knows the states of units, the
// simulator’s clock, and what the simulator has done: prices, ends of machines, and the last heartbeat of a complete
// server. It knows nothing of meters, charges and sums. Whole numbers throughout.

import type { Size } from '../../../src/contract/policy.ts'
import type { UnitState } from '../../../src/contract/states.ts'
import { DAY, HOUR, SECOND } from '../../../src/lib/clock.ts'

export type Standing = {
  id: string
  teamId: string
  state: UnitState
  /** Increases with every change. */
  revision: bigint
  size: Size
  gb: number
}

type Kind = 'compute' | 'volume'
type Open = { sinceMs: number; perHour: bigint }
/** `counted` is in nano-cents times milliseconds of an hour, so nothing is rounded before a sum is read. */
type Tab = { counted: bigint; open: Open | null; intervals: number }
type Known = { standing: Standing; tabs: Record<Kind, Tab> }

export type Account = {
  /** Reports all units in their present state. */
  see: (units: Standing[]) => void
  /** Reports a heartbeat of a complete server. */
  beat: (atMs: number) => void
  /** Reports that a machine ended by itself. The time at which a lost one ended is unknown. */
  ended: (id: string, how: 'exited' | 'lost') => void
  price: (prices: Record<Size, bigint>) => void
  units: () => Standing[]
  /** Nano-cents up to the last heartbeat, or to the end of the unit. */
  costOf: (id: string) => bigint
  /** The run time of all teams on a day; only while the clock is not set. */
  msOfDay: (day: number) => number
  transitions: () => number
  intervals: () => number
}

const UNSEEN_MS = 15 * SECOND
const volumePerGbHour = 10_000_000n
const there: UnitState[] = ['running', 'stopping', 'stopped', 'sleeping', 'starting']

export function createAccount(nowMs: () => number): Account {
  const known = new Map<string, Known>()
  const deaths = new Map<string, number>()
  const daysMs = new Map<number, number>()
  let prices: Record<Size, bigint> | null = null
  let wholeMs = 0
  let transitions = 0

  function see(units: Standing[]): void {
    for (const unit of units) {
      const before = known.get(unit.id)
      const tabs = before?.tabs ?? { compute: newTab(), volume: newTab() }
      if (before?.standing.revision === unit.revision) continue
      transitions += 1
      known.set(unit.id, { standing: unit, tabs })
      // It may have ended and begun again at this moment, for another price.
      close(tabs.compute, deaths.get(unit.id) ?? lastSeenMs())
      deaths.delete(unit.id)
      if (unit.state === 'running') open(tabs.compute, prices?.[unit.size] ?? 0n)
      if (unit.gb === 0 || (tabs.volume.open !== null) === there.includes(unit.state)) continue
      if (tabs.volume.open) close(tabs.volume, nowMs())
      else open(tabs.volume, volumePerGbHour * BigInt(unit.gb))
    }
  }

  /**
   * A unit that is stopped while it cannot be observed costs up to the last heartbeat, because it may have ended
   * right after it.
   */
  function lastSeenMs(): number {
    return nowMs() - wholeMs > UNSEEN_MS ? wholeMs : nowMs()
  }

  function open(tab: Tab, perHour: bigint): void {
    tab.open = { sinceMs: nowMs(), perHour }
    tab.intervals += 1
  }

  function close(tab: Tab, atMs: number): void {
    if (!tab.open) return
    const { sinceMs, perHour } = tab.open
    const endMs = Math.max(sinceMs, atMs)
    tab.counted += perHour * BigInt(endMs - sinceMs)
    tab.open = null
    for (let fromMs = sinceMs; fromMs < endMs; ) {
      const day = Math.floor(fromMs / DAY)
      const toMs = Math.min(endMs, (day + 1) * DAY)
      daysMs.set(day, (daysMs.get(day) ?? 0) + toMs - fromMs)
      fromMs = toMs
    }
  }

  function nanoCentsOf({ counted, open: since }: Tab): bigint {
    const more = since ? since.perHour * BigInt(Math.max(0, wholeMs - since.sinceMs)) : 0n
    return (counted + more) / BigInt(HOUR)
  }

  return {
    see,
    beat: (atMs) => {
      wholeMs = atMs
    },
    ended: (id, how) => {
      const unit = known.get(id)
      if (unit?.tabs.compute.open) deaths.set(id, how === 'exited' ? nowMs() : wholeMs)
    },
    price: (next) => {
      prices = { ...next }
    },
    units: () => [...known.values()].map(({ standing }) => standing),
    costOf: (id) => {
      const unit = known.get(id)
      return unit ? nanoCentsOf(unit.tabs.compute) + nanoCentsOf(unit.tabs.volume) : 0n
    },
    msOfDay: (day) => daysMs.get(day) ?? 0,
    transitions: () => transitions,
    intervals: () =>
      [...known.values()].reduce((sum, { tabs }) => sum + tabs.compute.intervals + tabs.volume.intervals, 0),
  }
}

function newTab(): Tab {
  return { counted: 0n, open: null, intervals: 0 }
}
