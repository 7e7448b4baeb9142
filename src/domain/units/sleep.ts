// POST /v1/units/{id}/sleep: sets how long a unit, or every unit of its stack, may idle (spec 2.6, design 4). Not a
// use: it only moves `sleepsAt` by the new window, and wakes nothing.

import { tellChanged } from '../transactions/changes.ts'
import type { App } from '../../app.ts'
import { invalidState } from '../../contract/errors.ts'
import type { SleepBody } from '../../contract/sleep.ts'
import type { Unit } from '../../contract/unit.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnitOfAnyTeam } from '../../store/units.ts'
import { listUnitsTogether } from '../../store/units-of-jobs.ts'
import { setStackWindow, setWindow } from '../../store/windows.ts'
import type { Caller } from '../credentials/caller.ts'
import { effectivePolicyOf } from './admission/effective-policy.ts'
import { checkSleep } from '../policies/check.ts'
import { inTeamTransaction } from '../transactions/transactions.ts'
import { sleepOperation } from './activity/hibernate.ts'
import { notPossibleNow } from './lifecycle/failures.ts'
import { retryOnConflict } from './lifecycle/retry-on-conflict.ts'
import { waitUntilStable } from './lifecycle/wait-until-stable.ts'
import { toUnit } from './model/to-unit.ts'
import { transition } from './lifecycle/transition.ts'
import { runOperation } from './lifecycle/operation.ts'

/**
 * Returns the units whose window was set. With `stack` it sets the whole stack, which then sleeps and wakes together;
 * without, the unit has its own window. `now` puts them to sleep at once.
 */
export async function sleepUnit(
  app: App,
  caller: Caller,
  id: string,
  body: SleepBody,
): Promise<{ units: Unit[] }> {
  checkSleep(effectivePolicyOf(app, caller), body.sleep)
  const unit = await waitUntilStable(app, caller, id)
  if (!hasWindow(unit)) throw notPossibleNow(unit, 'its sleep cannot be set')
  if (body.now && unit.state === 'stopped') throw notPossibleNow(unit, 'it cannot be put to sleep')
  const units = await setWindows(app, unit, body)
  if (body.now) {
    refuseBusy(app, units)
    await Promise.all(units.map((each) => putToSleep(app, caller, each.id)))
  }
  const now = app.clock.now()
  const records = await Promise.all(units.map((each) => findUnitOfAnyTeam(app.db, { id: each.id, now })))
  return { units: records.flatMap((record) => (record ? [toUnit(app, record)] : [])) }
}

async function setWindows(app: App, unit: UnitRecord, { sleep, stack }: SleepBody): Promise<UnitRecord[]> {
  if (!stack) {
    await setWindow(app.db, { teamId: unit.teamId, id: unit.id, sleep })
    tellChanged(app, unit.teamId)
    return [unit]
  }
  const { teamId, stackId } = unit
  // A unit that joins the stack at the same time takes over its window, or is already in this list.
  const members = await inTeamTransaction(app, teamId, async (db) => {
    await setStackWindow(db, { teamId, stackId, sleep })
    return await listUnitsTogether(db, { teamId, stackId, now: app.clock.now() })
  })
  // They wake together from now on, so none may be thawed ahead of its claim.
  app.activity.forgetFrozen(members.map((member) => member.id))
  return members.filter(hasWindow)
}

async function putToSleep(app: App, caller: Caller, id: string): Promise<void> {
  const sleeps = await retryOnConflict(async () => {
    const unit = await waitUntilStable(app, caller, id)
    refuseBusy(app, [unit])
    if (unit.state !== 'running' || unit.lastUsedAt === null) return true
    // If a call used the unit since it was read, the next attempt sees it.
    const stopping = await transition(app, unit, 'idle', { ifUnusedSince: unit.lastUsedAt })
    if (!stopping) return null
    await runOperation(app, stopping, sleepOperation)
    return true
  })
  if (sleeps === null) {
    throw invalidState(
      'The unit is used all the time; omit "now": it then sleeps when its window has passed.',
      {
        busy: [id],
      },
    )
  }
}

/** Refuses if a command or a transfer would be frozen in the middle. */
function refuseBusy(app: App, units: UnitRecord[]): void {
  const busy = units.filter(({ id, state }) => state === 'running' && app.activity.uses.has(id))
  if (busy.length === 0) return
  const endpoints = busy.flatMap(({ id }) => app.activity.sessions.endpointsOf(id))
  const names = busy.map(({ name }) => `"${name}"`).join(', ')
  throw invalidState(
    `A command, a file transfer, a visit or an answer on a client's connection is in progress in ${names}. Wait for it, or omit "now": the unit then sleeps when its window has passed.`,
    {
      busy: busy.map(({ id }) => id),
      ...(endpoints.length > 0 && { endpoints }),
    },
  )
}

function hasWindow({ state }: UnitRecord): boolean {
  return state !== 'error' && state !== 'destroying' && state !== 'destroyed'
}
