// Says in words how far the creation of a unit has come, for a client that waits. Changes nothing.

import type { App } from '../../app.ts'
import type { CreationStage, UnitProgress } from '../../contract/unit.ts'
import { findUnitsByName } from '../../store/named-units.ts'
import type { Caller } from '../credentials/caller.ts'
import { progressOf } from './model/progress.ts'

const words: Record<CreationStage, string> = {
  waiting: 'waiting for its turn',
  downloading: 'fetching the image',
  unpacking: 'unpacking the image',
  building: 'building the image, once',
  copying: 'copying',
  preparing: 'making the machine',
  starting: 'starting',
  checking: 'waiting until it is ready',
}

/** For the newest unit of this name that is being created; null if there is none yet. */
export async function creationStep(
  app: App,
  { teamId }: Caller,
  { name, stack }: { name: string; stack: string | null },
): Promise<string | null> {
  const found = await findUnitsByName(app.db, { teamId, name, stack, now: app.clock.now() })
  const unit = found.find(({ state }) => state === 'creating')
  const progress = unit ? progressOf(app, unit) : null
  if (!unit || !progress) return null
  // Its host says more of the image soon, if there is more to say.
  const hasImage = unit.progress?.done.includes('machine') ?? false
  return progress.stage === 'preparing' && !hasImage ? words.downloading : sentenceOf(progress)
}

/** `fetching the image: 12 of 80 MB`. */
function sentenceOf({ stage, bytes, log }: UnitProgress): string {
  const last = log.at(-1)
  if (bytes) return `${words[stage]}: ${megabytes(bytes.done)} of ${megabytes(bytes.total)} MB`
  return last === undefined ? words[stage] : `${words[stage]}: ${last}`
}

const megabytes = (bytes: number) => Math.round(bytes / 1_000_000)
