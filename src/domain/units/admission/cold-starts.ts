// Admission of cold starts: a few at a time, a fair share for each team, and only while the host has memory to spare.
// A thaw is not queued, because its memory is already in use.
//
// A machine's size is the most it may take, and most take far less. So a start only requires the configured reserve to
// be free, plus memory already promised to starts in progress (not yet visible in MemAvailable).

import type { App } from '../../../app.ts'
import { type AppError, unavailable } from '../../../contract/errors.ts'
import { tellBoundMet } from '../../../lib/bound-met.ts'
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
  const weight = machineSizes[size].memoryMb
  await throwUnavailable(app, teamId, () => app.coldStarts.run({ owner: teamId, weight }, start))
}

/**
 * For a create, before anything of it is there: its unit could not go back to where it was. Waits while memory
 * is short, and refuses where so many wait that it would be refused later.
 */
export async function waitForCapacity(app: App, teamId: string): Promise<void> {
  shedLoad(app, { teamId })
  if (await app.coldStarts.hasCapacity()) return
  await throwUnavailable(app, teamId, () => app.coldStarts.run({ owner: teamId, weight: 0 }, async () => {}))
}

/** Before the unit's state changes: one that would not even be let into the queue stays where it is. */
export function shedLoad(app: App, { teamId }: { teamId: string }): void {
  const retryAfterMs = app.coldStarts.fullForMs(teamId)
  if (retryAfterMs !== null) throw tooMany(app, teamId, retryAfterMs)
}

async function throwUnavailable(app: App, teamId: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof AdmissionRejected)) throw error
    throw error.reason === 'full' ? tooMany(app, teamId, error.retryAfterMs) : noMemory(app, teamId)
  }
}

function tooMany(app: App, teamId: string, retryAfterMs: number): AppError {
  tellBoundMet(app, { bound: 'starts that wait', by: teamId })
  const seconds = Math.max(1, Math.ceil(retryAfterMs / SECOND))
  return unavailable(`Too many units wait to be started; try again in ${seconds} s.`, seconds)
}

/** Nobody knows when memory is given back. By then the longest asleep were asked for theirs (idle.ts). */
const MEMORY_BACK_S = 10

function noMemory(app: App, teamId: string): AppError {
  tellBoundMet(app, { bound: 'memory of the host', by: teamId })
  const text = 'The host has no memory to spare for another unit'
  return unavailable(`${text}; try again in ${MEMORY_BACK_S} s, or put other units to sleep.`, MEMORY_BACK_S)
}
