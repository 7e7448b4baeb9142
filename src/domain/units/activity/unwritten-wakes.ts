// After a frozen unit is thawed and its visitor served, two statements pass until its row says that it runs
// (decisions/wake.md). Reads of the unit wait for them, so that a client that already has an answer from the unit is not
// told that it sleeps or starts.

import { type Clock, SECOND } from '../../../lib/clock.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'

/** Usually some milliseconds. If the database is slow, the unit is shown as its row says. */
const LONGEST_MS = SECOND

export type UnwrittenWakes = {
  /** Call it when the machine is thawed; it lasts until `wake` has ended, whether it succeeded or failed. */
  note(unit: UnitRecord, wake: Promise<unknown>): void
  /** Resolves when none is left of one unit, or of all of the team; after a second at the latest. */
  untilWritten(whose: { teamId: string; id?: string }): Promise<void>
}

export function createUnwrittenWakes(clock: Clock): UnwrittenWakes {
  const wakes = new Map<string, { teamId: string; written: Promise<void> }>()
  return {
    note({ id, teamId }, wake) {
      const written = wake.then(
        () => {},
        () => {},
      )
      const entry = { teamId, written }
      wakes.set(id, entry)
      void written.then(() => {
        if (wakes.get(id) === entry) wakes.delete(id)
      })
    },
    async untilWritten({ teamId, id }) {
      if (wakes.size === 0) return
      const wanted = [...wakes].filter(
        ([unitId, wake]) => wake.teamId === teamId && (id ?? unitId) === unitId,
      )
      if (wanted.length === 0) return
      await completesWithin(clock, LONGEST_MS, Promise.all(wanted.map(([, { written }]) => written)))
    },
  }
}
