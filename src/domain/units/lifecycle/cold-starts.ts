// Admission of cold starts: a few at a time, a fair share for each team, and only while the host has memory to spare.
// A thaw is not queued, because its memory is already in use.
//
// A machine's size is the most it may take, and most take far less. So a start only requires the configured reserve to
// be free, plus memory already promised to starts in progress (not yet visible in MemAvailable).

import type { App } from '../../../app.ts'
import { type AppError, unavailable } from '../../../contract/errors.ts'
import { logLimitReached } from '../../../lib/limit-reached.ts'
import { SECOND } from '../../../lib/clock.ts'
import { AdmissionRejected } from '../../../lib/concurrency/admission-queue.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { machineSizes } from '../model/machine.ts'

/** The team that starts something, and where. */
type Starter = Pick<UnitRecord, 'teamId' | 'hostId'>

/**
 * Runs the work that starts a machine, when the unit is admitted. Throws `unavailable` if it is not admitted in time.
 */
export async function admitColdStart(
  app: App,
  { teamId, hostId, size }: UnitRecord,
  start: () => Promise<void>,
): Promise<void> {
  const weight = machineSizes[size].memoryMb
  await throwUnavailable(app, teamId, () => app.coldStarts(hostId).run({ owner: teamId, weight }, start))
}

/**
 * For a create, before anything of it exists, since a new unit has no state to return to. Waits while memory is
 * short; refuses if so many wait that it would be refused later.
 */
export async function waitForCapacity(app: App, { teamId, hostId }: Starter): Promise<void> {
  shedLoad(app, { teamId, hostId })
  const starts = app.coldStarts(hostId)
  if (await starts.hasCapacity()) return
  await throwUnavailable(app, teamId, () => starts.run({ owner: teamId, weight: 0 }, async () => {}))
}

/** Called before the unit's state changes: if the queue is full, the unit stays where it is. */
export function shedLoad(app: App, { teamId, hostId }: Starter): void {
  const retryAfterMs = app.coldStarts(hostId).fullForMs(teamId)
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
  logLimitReached(app, { bound: 'starts that wait', by: teamId })
  const seconds = Math.max(1, Math.ceil(retryAfterMs / SECOND))
  return unavailable(`Too many units wait to be started; try again in ${seconds} s.`, seconds)
}

/** Memory may be freed at any time. By then the units asleep longest have been hibernated (idle.ts). */
const MEMORY_BACK_S = 10
const NO_MEMORY = 'The host has no memory to spare for another unit'

/** The refusal that is the error of a unit which was to start while memory was short; null for any other error. */
export function shortOfMemory({ message }: Pick<AppError, 'message'>): AppError | null {
  return message.includes(NO_MEMORY) ? unavailable(message, MEMORY_BACK_S) : null
}

function noMemory(app: App, teamId: string): AppError {
  logLimitReached(app, { bound: 'memory of the host', by: teamId })
  return unavailable(
    `${NO_MEMORY}; try again in ${MEMORY_BACK_S} s, or put other units to sleep.`,
    MEMORY_BACK_S,
  )
}
