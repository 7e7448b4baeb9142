// A new unit that its host has no room for is made on another one. A team is on one host, so this is for the only unit
// of a team, before anything of it has run. The hosts that were tried are kept with its progress, for a crash meanwhile.

import type { App } from '../../app.ts'
import { AppError } from '../../contract/errors.ts'
import { isEngineError } from '../../engine/errors.ts'
import type { StepFailed } from '../../lib/saga.ts'
import { hasOtherUnits, moveNewUnit } from '../../store/placement.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { chooseOtherHost, leaveOut } from '../hosts/place.ts'
import { inTeamTransaction } from '../transactions/transactions.ts'
import type { OperationContext } from './lifecycle/operation.ts'
import { machineSizes } from './model/machine.ts'

/** Nothing of the create is left. */
export class NoRoom extends AppError {}

const TRIES = 3
const TRY_AGAIN_S = 10
const stepsBeforeStart = ['image', 'machine']

/** Returns the unit as it now is on another host; null if it stays where it is. */
export async function moveToOtherHost(
  { app, unit }: OperationContext,
  failed: StepFailed<OperationContext>,
): Promise<UnitRecord | null> {
  const host = app.fleet.find(unit.hostId)
  if (!host || !isEngineError(failed.cause, 'host_full')) return null
  leaveOut(app, host)
  const tried = triedBy(unit)
  if (app.fleet.hosts().length === 1 || tried.length >= TRIES || unit.madeWith !== null) return null
  if (!stepsBeforeStart.includes(failed.step)) return null
  const { teamId, isolation, size, image, spec } = unit
  const newcomer = {
    teamId,
    memoryMb: machineSizes[size].memoryMb,
    largestVolumeGb: spec.volume?.gb ?? 0,
    images: [image],
  }
  const other = await chooseOtherHost(app, newcomer, { isolation, tried })
  if (!other || !(await isRemoved(app, unit))) return null
  const moved = { ...unit, hostId: other.id, address: null, progress: { done: [], tried } }
  const isMoved = await inTeamTransaction(app, teamId, async (db) => {
    if (await hasOtherUnits(db, { teamId, unitId: unit.id })) return false
    return await moveNewUnit(db, { ...moved, from: unit.hostId })
  })
  if (!isMoved) return null
  app.log.info({ unitId: unit.id, from: host.name, to: other.name }, 'new unit moved to a host with room')
  return moved
}

/** With several hosts: the answer for a unit that no host which may have it has room for; else null. */
export function noRoom(app: App, unit: UnitRecord, cause: unknown): NoRoom | null {
  if (app.fleet.hosts().length === 1 || !isEngineError(cause, 'host_full')) return null
  const tried = triedBy(unit).length
  const which =
    tried === 1
      ? 'The host that it can be on has no room for it'
      : `${tried} hosts were tried, and none has room for it`
  const message = `${which}. ${cause.publicMessage} Send it again in ${TRY_AGAIN_S} s.`
  const details = { unitId: unit.id }
  return new NoRoom('unavailable', 503, message, { details, retryAfterS: TRY_AGAIN_S, cause })
}

function triedBy({ progress, hostId }: UnitRecord): string[] {
  return [...(progress?.tried ?? []), hostId]
}

/** Nothing of a unit may be left on a host that its row does not name. */
async function isRemoved(app: App, unit: UnitRecord): Promise<boolean> {
  try {
    await app.fleet.engineOf(unit).destroy(unit.id)
    return true
  } catch (error) {
    app.log.warn(
      { err: error, unitId: unit.id },
      'refused unit could not be removed; it is not tried elsewhere',
    )
    return false
  }
}
