// When units ran and when they were there, as somebody sees it who does nothing but look: the list of units, ten times a
// second, and a watch of its own. What a look shows was so at some moment between its question and its
// answer. So each beginning and each end lies in a window: after the last look that showed the one, and before the first that
// showed the other.

import { setTimeout as delay } from 'node:timers/promises'
import type { MeterKind } from '../../src/store/meters.ts'
import type { StoppedReason } from '../../src/contract/states.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { send } from '../support/patient-client.ts'
import type { World } from '../soak/world.ts'

/** By a clock that nobody sets, in milliseconds. */
type Window = { after: number; by: number }
type Look = { askedMs: number; answeredMs: number }

export type Interval = {
  unitId: string
  kind: MeterKind
  began: Window
  /** Null while it lasts. */
  ended: Window | null
  /** Why the unit runs no longer. */
  reason: StoppedReason | null
}

export type Stopwatch = {
  intervals(): Interval[]
  /** Of every unit that was ever seen, as it was seen last. */
  units(): Map<string, Unit>
  /** The machine of a unit has just been killed, and somebody looked after it until then: it cannot have run for longer. */
  died(unitId: string, lookedAfterUntilMs: number): void
  /** Looks until then. */
  run(until: AbortSignal): Promise<void>
}

const LOOK_EVERY_MS = 100

export function createStopwatch(world: World): Stopwatch {
  const intervals: Interval[] = []
  const open = new Map<string, Interval>()
  const units = new Map<string, Unit>()
  const deaths = new Map<string, Window>()
  let last: Look = { askedMs: performance.now(), answeredMs: performance.now() }

  function see(listed: Unit[], look: Look): void {
    const now = new Map(listed.map((unit) => [unit.id, unit]))
    for (const unit of listed) {
      const before = units.get(unit.id)
      if (before && unit.costCentsSoFar < before.costCentsSoFar)
        world.journal.fault(
          `${unit.id} had cost ${before.costCentsSoFar}, and then ${unit.costCentsSoFar} cents`,
        )
      units.set(unit.id, unit)
    }
    for (const unit of units.values()) {
      const seen = now.get(unit.id)
      count('compute', unit, seen?.state === 'running', look)
      count('volume', unit, seen !== undefined && isThere(seen), look)
    }
    last = look
  }

  function count(kind: MeterKind, unit: Unit, isOn: boolean, look: Look): void {
    const key = `${unit.id} ${kind}`
    const interval = open.get(key)
    const change = { after: last.askedMs, by: look.answeredMs }
    if (isOn && !interval) {
      const began: Interval = { unitId: unit.id, kind, began: change, ended: null, reason: null }
      open.set(key, began)
      intervals.push(began)
      deaths.delete(unit.id)
    } else if (!isOn && interval) {
      const death = (kind === 'compute' ? deaths.get(unit.id) : undefined) ?? change
      interval.ended = { after: Math.min(change.after, death.after), by: Math.min(change.by, death.by) }
      interval.reason = unit.stoppedReason
      open.delete(key)
    }
  }

  return {
    intervals: () => intervals,
    units: () => units,
    died: (unitId, lookedAfterUntilMs) =>
      void deaths.set(unitId, { after: lookedAfterUntilMs, by: performance.now() }),
    run: async (until) => {
      while (!until.aborted) {
        const askedMs = performance.now()
        const listed = await send<{ units: Unit[] }>(world.berth, { method: 'GET', path: '/v1/units' })
        if (listed.kind === 'answered' && listed.status === 200)
          see(listed.body.units, { askedMs, answeredMs: performance.now() })
        await delay(LOOK_EVERY_MS)
      }
    },
  }
}

/** A volume costs from when its unit has been made until that goes. */
function isThere({ state }: Unit): boolean {
  return state !== 'creating' && state !== 'error' && state !== 'destroying' && state !== 'destroyed'
}
