// Packets from sibling units count as use, and wake sleeping units (design 4). The engine reports recipients several
// times a second. Reports are coalesced: busy units are checked once a second, quiet ones immediately.
//
// A packet must not be lost, because its sender may wait for an answer and send no other. So a unit that is falling
// asleep is woken once it sleeps, and a packet that could not wake its unit is retried for a minute. Reports can also
// be a flood: a unit that cannot wake is tried every few seconds and logged once, and teams take turns.

import type { App } from '../../../app.ts'
import { batched } from '../../../lib/concurrency/batch.ts'
import { MINUTE, SECOND } from '../../../lib/clock.ts'
import { createAdmissionQueue, type AdmissionQueue } from '../../../lib/concurrency/admission-queue.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { touchUnits } from '../../../store/unit-use.ts'
import { findUnitOfAnyTeam } from '../../../store/units.ts'
import { listUnitsAsleep } from '../../../store/units-of-jobs.ts'
import { followReports } from '../../hosts/follow-reports.ts'
import { onceAsleep, wakeUnit } from './wake.ts'

const LOOK_EVERY_MS = SECOND
/** Often enough for the shortest idle window, which is a minute. */
const RECORD_EVERY_MS = 15 * SECOND
const RETRY_EVERY_MS = 5 * SECOND
const PACKET_GOOD_FOR_MS = MINUTE
const MAX_AT_ONCE = 500

/** Follows the reports of all engines until the signal aborts, across restarts of an engine. */
export async function watchTraffic(app: App, signal: AbortSignal): Promise<void> {
  const traffic = new Traffic(app)
  const forget = (id: string) => traffic.forget(id)
  app.activity.events.on('freezing', forget)
  const follow: Parameters<typeof followReports>[2] = (engine, until) =>
    engine.watchTraffic((ids) => traffic.tell(ids), until)
  const lookAgain = async () => {
    while (!signal.aborted) {
      await app.clock.sleep(LOOK_EVERY_MS, signal).catch(() => {})
      traffic.lookAgain()
    }
  }
  await Promise.all([followReports(app, 'packets', follow, signal), lookAgain()])
  app.activity.events.off('freezing', forget)
}

/** The result of a check: the unit is awake, it must be woken, or the database is unavailable. */
type Seen = UnitRecord | 'awake' | 'unknown'

/** A packet whose unit has not woken yet. */
type Debt = { sentMs: number; tryAgainMs: number }

class Traffic {
  readonly #app: App
  readonly #look: (id: string) => Promise<Seen>
  readonly #wakes: AdmissionQueue
  /** Units checked since the last iteration: further packets for them are handled in the next one. */
  #looked = new Set<string>()
  #later = new Set<string>()
  /** Units being checked or woken at the moment. */
  readonly #busy = new Set<string>()
  readonly #owed = new Map<string, Debt>()

  constructor(app: App) {
    this.#app = app
    this.#look = batched((ids) => recordAndLook(app, ids), MAX_AT_ONCE)
    this.#wakes = createAdmissionQueue({
      clock: app.clock,
      capacity: async () => ({ places: 16, weight: Infinity }),
      // At most one wake per unit waits.
      bounds: { perOwner: Infinity, inAll: Infinity },
      maxWaitMs: MINUTE,
      slowMs: 2 * SECOND,
      releaseDelayMs: 0,
    })
  }

  /** Packets were sent to these units. */
  tell(ids: string[]): void {
    const nowMs = this.#app.clock.monotonicMs()
    for (const id of ids) {
      const debt = this.#owed.get(id)
      if (debt) debt.sentMs = nowMs
      else if (this.#looked.has(id) || this.#busy.has(id)) this.#later.add(id)
      else void this.#attend(id, nowMs)
    }
  }

  /**
   * The unit begins to fall asleep: earlier packets were for the running unit, and the next one is handled at once.
   */
  forget(id: string): void {
    this.#looked.delete(id)
    this.#later.delete(id)
  }

  /** One iteration: checks the units that got packets since the last one, and retries the wakes that failed. */
  lookAgain(): void {
    const nowMs = this.#app.clock.monotonicMs()
    const due = new Map([...this.#later].map((id) => [id, nowMs]))
    this.#later = new Set()
    this.#looked = new Set()
    for (const [id, { sentMs, tryAgainMs }] of this.#owed) {
      if (nowMs > sentMs + PACKET_GOOD_FOR_MS) this.#owed.delete(id)
      else if (nowMs >= tryAgainMs) due.set(id, sentMs)
    }
    for (const [id, sentMs] of due) {
      if (!this.#busy.has(id)) void this.#attend(id, sentMs)
      else if (!this.#owed.has(id)) this.#later.add(id)
    }
  }

  async #attend(id: string, sentMs: number): Promise<void> {
    this.#looked.add(id)
    this.#busy.add(id)
    try {
      const seen = await this.#look(id)
      if (seen === 'unknown') {
        this.#later.add(id)
        return
      }
      if (seen !== 'awake') await this.#wake(seen)
      this.#owed.delete(id)
    } catch (error) {
      const debt = this.#owed.get(id)
      if (!debt)
        this.#app.log.warn({ err: error, unitId: id }, 'packet did not wake its unit; will be retried')
      this.#owed.set(id, {
        sentMs: Math.max(sentMs, debt?.sentMs ?? 0),
        tryAgainMs: this.#app.clock.monotonicMs() + RETRY_EVERY_MS,
      })
    } finally {
      this.#busy.delete(id)
    }
  }

  async #wake({ id, teamId }: UnitRecord): Promise<void> {
    await this.#wakes.run({ owner: teamId, weight: 0 }, () => wakeForPacket(this.#app, id))
  }
}

async function recordAndLook(app: App, ids: string[]): Promise<Seen[]> {
  try {
    await app.clock.withStableTime(async () => {
      const usedAt = app.clock.now()
      const ifUsedBefore = new Date(usedAt.getTime() - RECORD_EVERY_MS)
      await touchUnits(app.db, { ids, usedAt, ifUsedBefore })
    })
    // Read after recording: a unit that runs now is kept awake by the recorded use.
    const asleep = await listUnitsAsleep(app.db, { ids, now: app.clock.now() })
    const byId = new Map(asleep.map((unit) => [unit.id, unit]))
    return ids.map((id) => byId.get(id) ?? 'awake')
  } catch (error) {
    app.log.warn({ err: error, units: ids.length }, 'packets could not be recorded; will be retried')
    return ids.map(() => 'unknown')
  }
}

async function wakeForPacket(app: App, id: string): Promise<void> {
  const unit = await findUnitOfAnyTeam(app.db, { id, now: app.clock.now() })
  const asleep = unit && (await onceAsleep(app, unit))
  if (asleep) await wakeUnit(app, null, asleep)
}
