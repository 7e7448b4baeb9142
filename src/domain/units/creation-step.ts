// How far a unit has come that is being made, in words, for whoever waits for it. Reading it changes nothing.

import type { App } from '../../app.ts'
import { findUnitsByName } from '../../store/named-units.ts'
import type { Caller } from '../credentials/caller.ts'

/** What comes after each checkpoint of the way (create.ts). */
const next: Record<string, string> = {
  image: 'making the machine',
  machine: 'starting',
  order: 'starting',
  start: 'waiting until it is ready',
}

/** Of the newest unit by this name that is being made; null where none is, or none yet. */
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
