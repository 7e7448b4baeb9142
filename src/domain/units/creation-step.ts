// Says in words how far the creation of a unit has come, for a client that waits. Changes nothing.

import type { App } from '../../app.ts'
import { findUnitsByName } from '../../store/named-units.ts'
import type { Caller } from '../credentials/caller.ts'

/** The step after each checkpoint of the operation (create.ts). */
const next: Record<string, string> = {
  image: 'making the machine',
  machine: 'starting',
  order: 'starting',
  start: 'waiting until it is ready',
}

/** For the newest unit of this name that is being created; null if there is none yet. */
export async function creationStep(
  app: App,
  { teamId }: Caller,
  { name, stack }: { name: string; stack: string | null },
): Promise<string | null> {
  const found = await findUnitsByName(app.db, { teamId, name, stack, now: app.clock.now() })
  const unit = found.find(({ state }) => state === 'creating')
  if (!unit) return null
  return next[unit.progress?.done.at(-1) ?? ''] ?? 'fetching the image'
}
