// What this process knows about the use of its units: the uses, waiting calls and operations in progress, and the units it
// froze. None of it is stored: a server that starts knows nothing, and the rows of the units decide. The other files of this
// folder are functions on it. App holds it, so it imports only the store and lib/.

import { EventEmitter } from 'node:events'
import type { Kysely } from 'kysely'
import type { Clock } from '../../../lib/clock.ts'
import { batched } from '../../../lib/concurrency/batch.ts'
import { createSingleFlight, type SingleFlight } from '../../../lib/concurrency/single-flight.ts'
import { createTrailingFlight, type TrailingFlight } from '../../../lib/concurrency/trailing-flight.ts'
import type { Database } from '../../../store/db.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { findUnits } from '../../../store/units.ts'
import { createCounts, type Counts } from './counts.ts'
import { createSessions, type Sessions } from './sessions.ts'
import { createUnwrittenWakes, type UnwrittenWakes } from './unwritten-wakes.ts'
import { createUsedLately, type UsedLately } from './used-lately.ts'

export type UnitActivity = {
  /** Uses in progress: commands, transfers, visits. A unit with one is not put to sleep. */
  uses: Counts
  /** Calls that wait for a unit to run or to become stable. */
  waiters: Counts
  /** The visits in progress, as gateways report them. Each is a use. */
  sessions: Sessions
  /**
   * Operations in progress, by their kind and unit. A second caller, or the job that resumes operations after a crash, joins
   * the one in progress.
   */
  operations: SingleFlight<void>
  /** Reads a unit; null if the team has none with that id. Concurrent reads become one statement. */
  load: (named: { teamId: string; id: string }) => Promise<UnitRecord | null>
  /** Reads for calls that wait for a unit, by team and id. Concurrent reads of one unit become one. */
  reads: TrailingFlight<UnitRecord>
  /** Writes of uses, by the unit's id. Concurrent writes of one unit become one. The result is whether the unit runs. */
  useWrites: TrailingFlight<boolean>
  /** Reads of units with a record of their use, by team and id. Concurrent ones of one unit become one. */
  usedReads: TrailingFlight<UnitRecord | null>
  /** What is known of units that calls used lately. It says what to try first, and decides nothing. */
  usedLately: UsedLately
  /** Wakes whose machines are thawed and whose rows do not say so yet. */
  unwrittenWakes: UnwrittenWakes
  /**
   * Returns a unit that this process froze, as its row is, for a thaw ahead of the claim (thaw.ts). Null if it is not known, or
   * was taken before in this sleep.
   */
  takeFrozen: (id: string) => UnitRecord | null
  /** These units must not be thawed ahead of their claims. */
  forgetFrozen: (ids: readonly string[]) => void
  /** Call it after every change of state that was written. */
  stateChanged: (before: UnitRecord, after: UnitRecord) => void
  events: UnitEvents
}

export type UnitEvents = EventEmitter<{
  /** Before the machine of a unit is frozen. */
  freezing: [id: string]
  /** A run ended: leases for it are no longer valid. */
  runEnded: [id: string, hostId: string]
}>

export function createUnitActivity({ db, clock }: { db: Kysely<Database>; clock: Clock }): UnitActivity {
  const uses = createCounts()
  const frozen = new Map<string, UnitRecord>()
  const usedLately = createUsedLately()
  const events: UnitEvents = new EventEmitter()
  // Each open terminal listens.
  events.setMaxListeners(0)
  return {
    uses,
    waiters: createCounts(),
    sessions: createSessions({ clock, uses }),
    operations: createSingleFlight<void>(clock),
    load: batched((wanted) => findUnits(db, { wanted, now: clock.now() })),
    reads: createTrailingFlight<UnitRecord>(),
    useWrites: createTrailingFlight<boolean>(),
    usedReads: createTrailingFlight<UnitRecord | null>(),
    usedLately,
    unwrittenWakes: createUnwrittenWakes(clock),
    takeFrozen: (id) => {
      const unit = frozen.get(id)
      // A stack that sleeps together also wakes together.
      if (!unit || unit.sleepsTogether) return null
      frozen.delete(id)
      return unit
    },
    forgetFrozen: (ids) => {
      for (const id of ids) frozen.delete(id)
    },
    stateChanged: (before, after) => {
      if (before.state === 'running' && after.state !== 'running')
        events.emit('runEnded', after.id, after.hostId)
      if (after.state !== 'running') usedLately.forget(after.id)
      if (after.state === 'sleeping' && after.frozen) frozen.set(after.id, after)
      else frozen.delete(after.id)
    },
    events,
  }
}
