// Admission of cold starts: a few at a time, a fair share for each team, and only while the host has memory to spare.
// A thaw is not queued, because its memory is already in use.
//
// A machine's size is the most it may take, and most take far less. So a start only requires the configured reserve to
// be free, plus memory already promised to starts in progress (not yet visible in MemAvailable).

import type { App } from '../../../app.ts'
import { type AppError, unavailable } from '../../../contract/errors.ts'
import { SECOND } from '../../../lib/clock.ts'
import { AdmissionRejected } from '../../../lib/concurrency/admission-queue.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { machineSizes } from '../model/machine.ts'

/** Does what starts a machine when it is the unit's turn. Throws `unavailable` when there is no room in time. */
export async function admitColdStart(
  app: App,
  { teamId, size }: UnitRecord,
  start: () => Promise<void>,
): Promise<void> {
  await throwUnavailable(() =>
    app.coldStarts.run({ owner: teamId, weight: machineSizes[size].memoryMb }, start),
  )
}

/**
 * For a create, before anything of it is there: its unit could not go back to where it was. Waits while memory
 * is short, and refuses where so many wait that it would be refused later.
 */
export async function waitForCapacity(app: App, teamId: string): Promise<void> {
  shedLoad(app, { teamId })
  if (await app.coldStarts.hasCapacity()) return
  await throwUnavailable(() => app.coldStarts.run({ owner: teamId, weight: 0 }, async () => {}))
}

/** Before the unit's state changes: one that would not even be let into the queue stays where it is. */
export function shedLoad(app: App, { teamId }: { teamId: string }): void {
  const retryAfterMs = app.coldStarts.fullForMs(teamId)
  if (retryAfterMs !== null) throw tooMany(retryAfterMs)
}

async function throwUnavailable(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof AdmissionRejected)) throw error
    throw error.reason === 'full' ? tooMany(error.retryAfterMs) : noMemory()
  }
}

function tooMany(retryAfterMs: number): AppError {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / SECOND))
  return unavailable(`Too many units wait to be started; try again in ${seconds} s.`, seconds)
}

/** Nobody knows when memory is given back. By then the longest asleep were asked for theirs (idle.ts). */
const MEMORY_BACK_S = 10

function noMemory(): AppError {
  const text = 'The host has no memory to spare for another unit'
  return unavailable(`${text}; try again in ${MEMORY_BACK_S} s, or put other units to sleep.`, MEMORY_BACK_S)
}
