// One unit of the caller's team.

import type { App } from '../../app.ts'
import { forbidden, notFound } from '../../contract/errors.ts'
import type { Unit } from '../../contract/unit.ts'
import { isId } from '../../lib/ids.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnit, unitExists } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { toUnit } from './model/to-unit.ts'

/** Reads that arrive together are batched into one query. */
export async function getUnit(app: App, { teamId }: Caller, id: string): Promise<Unit> {
  if (!isId('unit', id)) throw notFound('unit', id)
  await app.activity.unwrittenWakes.untilWritten({ teamId, id })
  return toUnit(app, (await app.activity.load({ teamId, id })) ?? (await refuse(app, id)))
}

/**
 * Spec 5.5 and 7: a unit of another team gets 403, an unknown one 404; ids are random, so the difference reveals
 * nothing. Rows of another team are never read.
 */
export async function getRecord(app: App, caller: Caller, id: string): Promise<UnitRecord> {
  if (!isId('unit', id)) throw notFound('unit', id)
  const unit = await findUnit(app.db, { teamId: caller.teamId, id, now: app.clock.now() })
  return unit ?? (await refuse(app, id))
}

async function refuse(app: App, id: string): Promise<never> {
  if (await unitExists(app.db, id)) throw forbidden('This unit belongs to another team.')
  throw notFound('unit', id)
}
