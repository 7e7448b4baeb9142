// The wake fast path. A visitor waits for the first byte of a frozen unit, so its machine is thawed while the database
// is asked whether it may run, and the visit is passed on while the change is written (decision 0063). Only units that
// this process froze itself are woken so; it knows nothing of others without a query.
//
// Entries of the frozen-unit cache are dropped on every state change, all of which this process makes (decision 0057),
// and when a stack changes the unit's window (sleep.ts). The real decision is still made under the team lock with a
// revision check (claim.ts), and the team's turn keeps anyone else of the team from being admitted in between. A
// machine that may not run is frozen again. We thaw optimistically at most once per sleep, so repeatedly visiting a
// unit that may not run gains no CPU time.

import { setImmediate } from 'node:timers/promises'
import type { App } from '../../../app.ts'
import { SECOND } from '../../../lib/clock.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import type { Visited } from '../../../contract/visit.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { checkLastCredential, claimUnitInTeamLock } from '../admission/claim.ts'
import { machineRef } from '../model/machine.ts'
import { thawOperation } from './wake.ts'
import { noteUnwrittenWake } from './written-wakes.ts'
import { runOperation } from '../lifecycle/operation.ts'

/**
 * Either takes milliseconds. A machine that hangs is left to the reconciler, and does not delay other units of the
 * team.
 */
const TIMEOUT_MS = SECOND

/** Returns null if the visit must take the ordinary path. Rejects with the reason if the unit may not wake. */
export async function thawOptimistically(app: App, id: string, withinMs: number): Promise<Visited | null> {
  const unit = app.frozenUnits.get(id)
  // A stack that sleeps together also wakes together.
  if (!unit || unit.sleepsTogether) return null
  app.frozenUnits.delete(id)
  const answer = Promise.withResolvers<Visited | null>()
  const woken = thawAndClaim(app, unit, () => {
    noteUnwrittenWake(app, unit, woken)
    answer.resolve(toRunning(unit))
  })
  woken.then(() => answer.resolve(null), answer.reject)
  return (await completesWithin(app.clock, withinMs, answer.promise)) ? await answer.promise : null
}

export function toRunning({ id, generation, address }: UnitRecord): Visited {
  if (address === null) throw new Error(`${id} runs without an address`)
  return { kind: 'running', generation, address }
}

async function thawAndClaim(app: App, unit: UnitRecord, onConnected: () => void): Promise<void> {
  let begun: Promise<void> = Promise.resolve()
  const starting = await app.teamLocks(unit.teamId, async () => {
    begun = app.engine.thaw(machineRef(unit))
    // The operation reports its own failure.
    begun.catch(() => {})
    // Lets the request leave this process before the next query is built, which takes as long as the request's way.
    await setImmediate()
    try {
      await checkLastCredential(app, app.db, unit)
      begun.then(onConnected, () => {})
      await completesWithin(app.clock, TIMEOUT_MS, begun).catch(() => {})
      // Lets the answer leave too, before the change is written.
      await setImmediate()
      const taken = await claimUnitInTeamLock(app, null, unit, 'thaw')
      if (!taken) app.unitEvents.emit('runEnded', unit.id)
      return taken
    } catch (error) {
      await refreeze(app, unit, begun)
      throw error
    }
  })
  if (starting) await runOperation(app, starting, thawOperation, begun)
}

/** Its row still says that it sleeps. A visit that was passed on meanwhile must ask again. */
async function refreeze(app: App, unit: UnitRecord, begun: Promise<void>): Promise<void> {
  await completesWithin(app.clock, TIMEOUT_MS, begun).catch(() => {})
  app.unitEvents.emit('runEnded', unit.id)
  await completesWithin(app.clock, TIMEOUT_MS, app.engine.freeze(machineRef(unit))).catch(() => {})
}
