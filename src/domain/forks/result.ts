// The answer to a fork (spec 2.7), read from its rows, so that a caller that waited and one that asks again get the
// same.

import type { App } from '../../app.ts'
import { type AppError, notFound, providerError } from '../../contract/errors.ts'
import type { ForkResult } from '../../contract/fork.ts'
import { SECOND } from '../../lib/clock.ts'
import { completesWithin } from '../../lib/concurrency/completes-within.ts'
import { findFork, type ForkError, type ForkRecord } from '../../store/forks.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnit, listUnitsOfFork } from '../../store/units.ts'
import { costLine } from '../billing/cost-line.ts'
import type { Caller } from '../credentials/caller.ts'
import { notPossible } from '../units/lifecycle/failures.ts'
import { toUnit } from '../units/model/to-unit.ts'
import { keptOfForkSchema } from './reserve.ts'
import { areCopied, runFork } from './run.ts'

type Wait = { wait: boolean; waitTimeoutMs: number }

/** How long a call that does not wait for the copies to run waits for their disks: most take a tenth of a second. */
const COPIED_WITHIN_MS = 5 * SECOND

/**
 * Answers once the copies are in their final state; without `wait`, or after `waitTimeoutMs`, they may still be
 * `creating`. It always waits for their disks, so that `copied` is correct.
 */
export async function answerFork(
  app: App,
  caller: Caller,
  fork: ForkRecord,
  { wait, waitTimeoutMs }: Wait,
): Promise<ForkResult> {
  const made = runFork(app, fork)
  if (wait) await completesWithin(app.clock, waitTimeoutMs, made)
  else made.catch(() => {})
  await untilCopied(app, caller, fork.id)
  return await resultOf(app, caller, fork.id)
}

/**
 * Answers for a fork that broke off after its copies were reserved, or that is still in progress. The background job
 * (run.ts) resumes a fork that broke off, not this.
 */
export async function resumeFork(
  app: App,
  caller: Caller,
  { wait, waitTimeoutMs }: Wait,
  kept: unknown,
): Promise<ForkResult> {
  const { forkId } = keptOfForkSchema.parse(kept)
  const { teamId } = caller
  const deadlineMs = app.clock.monotonicMs() + (wait ? waitTimeoutMs : 0)
  while (app.clock.monotonicMs() < deadlineMs) {
    const fork = await findFork(app.db, { teamId, id: forkId })
    if (fork === null || fork.endedAt !== null) break
    await app.clock.sleep(POLL_EVERY_MS)
  }
  return await resultOf(app, caller, forkId)
}

const POLL_EVERY_MS = SECOND / 4
const LOOK_FOR_COPIES_EVERY_MS = SECOND / 20

async function untilCopied(app: App, { teamId }: Caller, id: string): Promise<void> {
  const deadlineMs = app.clock.monotonicMs() + COPIED_WITHIN_MS
  for (;;) {
    const fork = await findFork(app.db, { teamId, id })
    if (!fork || fork.endedAt !== null || areCopied(fork)) return
    if (app.clock.monotonicMs() >= deadlineMs) return
    await app.clock.sleep(LOOK_FOR_COPIES_EVERY_MS)
  }
}

async function resultOf(app: App, { teamId }: Caller, id: string): Promise<ForkResult> {
  const fork = await findFork(app.db, { teamId, id })
  if (!fork) throw notFound('fork', id)
  const units = await listUnitsOfFork(app.db, { teamId, forkId: id, now: app.clock.now() })
  if (fork.error?.isSourceGone) throw await sourceGone(app, teamId, fork.error)
  if (fork.error !== null) throw couldNotBeMade(fork.error, units)
  return {
    units: units.map((unit) => toUnit(app, unit)),
    copied: Object.fromEntries(units.map(({ name, copied }) => [name, copied ?? 'config'])),
    outputs: {},
    stack: fork.stackName,
    skipped: fork.skipped,
    costLine: costLine(units),
  }
}

/** The caller's team destroyed the source, so the host did not fail. */
async function sourceGone(app: App, teamId: string, { text, unitId }: ForkError): Promise<AppError> {
  const source = await findUnit(app.db, { teamId, id: unitId, now: app.clock.now() })
  if (!source) throw new Error('the source of a fork has no row')
  return notPossible(source, text, { unitId })
}

function couldNotBeMade({ text, unitId }: ForkError, units: UnitRecord[]): AppError {
  return providerError(text, { details: { unitId, unitIds: units.map(({ id }) => id) } })
}
