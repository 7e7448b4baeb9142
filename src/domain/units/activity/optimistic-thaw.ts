// A visit to a unit whose machine stands still: somebody waits for its first byte, so the machine goes on while the
// database is asked whether it may, and the visit is passed on while the change is written (decision 0063). Only for a
// unit that this process has put to sleep itself; of any other it knows nothing without asking.
//
// What is remembered of a unit goes with every change of its state, all of which this process makes (decision 0057), and
// with a window that it is given with its stack (sleep.ts). What is true is decided as ever, with the team locked and by
// the unit's revision (claim.ts). Nobody else of the team is admitted between the look and that, for all of it happens
// in the team's turn. A machine that may not go on stands still again; it is let go on ahead once for each sleep, so
// refusals are worth nothing to whoever collects them.

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

/** Either takes milliseconds. One that hangs is left to the reconciler, and holds up nobody else of the team. */
const TIMEOUT_MS = SECOND

/** Null: the unit is to be visited in the ordinary way. Rejects with why it does not wake. */
export async function thawOptimistically(app: App, id: string, withinMs: number): Promise<Visited | null> {
  const unit = app.frozenUnits.get(id)
  // A stack that sleeps together wakes together, each in its turn.
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
    // The operation reports a failure.
    begun.catch(() => {})
    // It has left this process before the other question is put together, which takes as long as the way there.
    await setImmediate()
    try {
      await checkLastCredential(app, app.db, unit)
      begun.then(onConnected, () => {})
      await completesWithin(app.clock, TIMEOUT_MS, begun).catch(() => {})
      // The answer has left, too, before the change is put together.
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

/** Its row says that it sleeps. Whoever was passed on to it meanwhile has to ask again. */
async function refreeze(app: App, unit: UnitRecord, begun: Promise<void>): Promise<void> {
  await completesWithin(app.clock, TIMEOUT_MS, begun).catch(() => {})
  app.unitEvents.emit('runEnded', unit.id)
  await completesWithin(app.clock, TIMEOUT_MS, app.engine.freeze(machineRef(unit))).catch(() => {})
}
