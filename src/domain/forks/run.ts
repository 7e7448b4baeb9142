// Runs a fork: all copies are created at once, start side by side, and become visible together in one transaction; or
// the fork fails and everything is rolled back. Its rows alone record its progress, so it can be resumed or ended
// after a crash.
//
// Copies are units like any other and can be destroyed meanwhile, which does not fail the others.

import type { App } from '../../app.ts'
import { limits } from '../../contract/limits.ts'
import type { LogLine } from '../../engine/engine.ts'
import { isEngineError } from '../../engine/errors.ts'
import { MINUTE } from '../../lib/clock.ts'
import { runSaga, type Saga, type Step, type StepFailed, undoSaga } from '../../lib/saga.ts'
import {
  endFork,
  findFork,
  type ForkRecord,
  listForksUnderWay,
  saveCopy,
  saveForkProgress,
} from '../../store/forks.ts'
import { isOutage } from '../../store/outage.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnitOfAnyTeam, isUnchanged, listUnitsByIds, listUnitsOfFork } from '../../store/units.ts'
import { noteStartedWithEgress } from '../egress/apply.ts'
import { destroyOperation } from '../units/destroy.ts'
import { failureText } from '../units/lifecycle/failures.ts'
import { readLastLines } from '../units/model/kept-log.ts'
import { machineRef } from '../units/model/machine.ts'
import { readyStep, runSpec, startStep } from '../units/lifecycle/run.ts'
import { transition } from '../units/lifecycle/transition.ts'
import { recordUses } from '../units/activity/record-use.ts'
import {
  forkKey,
  newOperationContext,
  reportOperation,
  retryWhileEngineAway,
  runOperation,
  type OperationContext,
} from '../units/lifecycle/operation.ts'
import { rollBackFork } from './roll-back.ts'
import { inTransaction } from '../transactions/transactions.ts'

export type ForkContext = {
  app: App
  fork: ForkRecord
  /** The copies still being created. */
  copies: OperationContext[]
  /** The copy that failed, if it was a copy. */
  failed: OperationContext | null
}

// Machines are created before their addresses are stored, since the resolver identifies clients by address.
const copyStep: Step<ForkContext> = {
  name: 'copy',
  run: async (context) => {
    const { app, fork, copies } = context
    const [first] = copies
    if (!first) return
    const ids = copies.map(({ unit }) => sourceOf(unit))
    const sources = await listUnitsByIds(app.db, { teamId: fork.teamId, ids, now: app.clock.now() })
    const generations = new Map(sources.map((source) => [source.id, machineRef(source)]))
    const forks = await Promise.all(
      copies.map(async ({ unit }) => ({
        id: unit.id,
        source: generations.get(sourceOf(unit)) ?? { id: sourceOf(unit), generation: 0 },
        networkGroup: unit.networkGroup,
        run: isToRun(unit) ? await runSpec(app, unit) : null,
      })),
    )
    const made = await whileUsed(app, sources, () => app.fleet.engineOf(first.unit).fork(forks))
    const addresses = new Map(made.map(({ status }) => [status.id, status.address]))
    for (const each of copies) each.unit = { ...each.unit, address: addresses.get(each.unit.id) ?? null }
  },
  undo: async ({ app, copies }) => {
    await Promise.all(copies.map(({ unit }) => app.fleet.engineOf(unit).destroy(unit.id)))
  },
  checkpoint: true,
}

const startForkStep: Step<ForkContext> = {
  name: 'start',
  run: async (context) => await sideBySide(context, startStep),
}

const readyForkStep: Step<ForkContext> = {
  name: 'ready',
  run: async (context) => await sideBySide(context, readyStep),
}

export const forkSaga: Saga<ForkContext> = { name: 'fork', steps: [copyStep, startForkStep, readyForkStep] }

/** Whether the copies have their disks. */
export function areCopied({ progress }: ForkRecord): boolean {
  return progress?.done.includes(copyStep.name) ?? false
}

/** Longer than copies may take to become ready. */
const TIMEOUT_MS = 10 * MINUTE + limits.healthcheckTimeoutMs.max

/** Runs the fork, or joins the run in progress. Its result is in its row. */
export async function runFork(app: App, { id, teamId }: ForkRecord): Promise<void> {
  await app.activity.operations.run(forkKey(id), TIMEOUT_MS, async () => {
    const fork = await findFork(app.db, { teamId, id })
    if (fork && fork.endedAt === null) await runForkHere(app, fork)
  })
}

/** One run of the background job: resumes forks after a crash or a database outage. */
export async function resumeForks(app: App): Promise<void> {
  for (const fork of await listForksUnderWay(app.db)) {
    // Not awaited: one machine that hangs must not delay the others.
    runFork(app, fork).catch((error: unknown) => {
      app.log.warn({ err: error, forkId: fork.id }, 'fork failed to resume')
    })
  }
}

async function runForkHere(app: App, fork: ForkRecord): Promise<void> {
  const { id: forkId, teamId } = fork
  const units = await listUnitsOfFork(app.db, { teamId, forkId, now: app.clock.now() })
  const copies = units
    .filter(({ state }) => state === 'creating')
    .map((unit) => newOperationContext(app, unit))
  const context: ForkContext = { app, fork, copies, failed: null }
  const journal = {
    done: fork.progress?.done ?? [],
    save: async (done: string[]) => await keepCopies(context, done),
  }
  const failed = await retryWhileEngineAway<ForkContext>(app, () =>
    runSaga(forkSaga, context, { journal, failpoints: app.failpoints }),
  )
  if (!failed) {
    await onSuccess(context)
    return tellOfAll(context, 'success')
  }
  // The fork's state is unknown without the database; the fork is resumed when the database is back.
  if (isOutage(failed.cause)) throw failed.cause
  tellOfAll(context, 'failure')
  await onFailure(context, failed)
}

function tellOfAll({ copies }: ForkContext, result: 'success' | 'failure'): void {
  for (const copy of copies) reportOperation(copy, forkSaga.name, result)
}

/** Another process has ended the fork. */
class Ended extends Error {}

async function keepCopies(context: ForkContext, done: string[]): Promise<void> {
  const { app, fork, copies } = context
  const kept = await inTransaction(app, async (db) => {
    if (!(await saveForkProgress(db, { id: fork.id, progress: { done } }))) throw new Ended()
    const kept: OperationContext[] = []
    for (const each of copies) if (await saveCopy(db, each.unit)) kept.push(each)
    return kept
  })
  context.copies = kept
  await removeUnwanted(
    app,
    copies.filter((each) => !kept.includes(each)),
  )
}

/** Runs the step for all copies that are to run. Waits for all, then throws if one failed. */
async function sideBySide(context: ForkContext, step: Step<OperationContext>): Promise<void> {
  const { app } = context
  const starting = context.copies.filter(({ unit, ended }) => isToRun(unit) && !ended)
  const outcomes = await Promise.allSettled(starting.map((each) => step.run(each)))
  const failures = starting.flatMap((copy, index) => {
    const outcome = outcomes[index]
    return outcome?.status === 'rejected' ? [{ copy, cause: outcome.reason as unknown }] : []
  })
  const away = failures.find(({ cause }) => isEngineError(cause, 'engine_away') || isOutage(cause))
  if (away) throw away.cause
  for (const { copy, cause } of failures) {
    if (await isUnchanged(app.db, copy.unit)) {
      context.failed = copy
      throw cause
    }
    context.copies = context.copies.filter((each) => each !== copy)
  }
}

async function onSuccess({ app, fork, copies }: ForkContext): Promise<void> {
  await inTransaction(app, async (db) => {
    if (!(await endFork(db, { id: fork.id, at: app.clock.now(), error: null }))) return
    for (const { unit, startedMs, resumed, ended } of copies) {
      if (ended) continue
      await transition(app, unit, endTriggerOf(unit), {
        db,
        ...(startedMs === null ? {} : { startedMs }),
        set: { copied: resumed ? 'memory' : 'disk' },
      })
    }
  })
  const started = copies.filter(({ startedMs, ended }) => startedMs !== null && !ended)
  await Promise.all(started.map(async ({ unit }) => await noteStartedWithEgress(app, unit)))
  await removeUnwanted(app, copies)
}

async function onFailure(
  context: ForkContext,
  { step, cause, attempted }: StepFailed<ForkContext>,
): Promise<void> {
  const { app, fork, failed } = context
  if (cause instanceof Ended) return
  app.log.warn({ err: cause, forkId: fork.id, unitId: failed?.unit.id, step }, 'fork failed')
  const culprit = (failed ?? context.copies[0])?.unit
  if (!culprit) throw cause
  const gone = step === copyStep.name ? await findSourceGone(context) : null
  const printed = attempted.includes(startForkStep)
    ? await lastLinesOf(context)
    : new Map<string, LogLine[]>()
  // States first: a killed process whose unit is still `creating` would look like an exit.
  const destroying = await rollBackFork(
    app,
    fork,
    gone
      ? { text: sourceGone(gone), unitId: gone.id, isSourceGone: true }
      : { text: failureText(cause, culprit), unitId: culprit.id },
    printed,
  )
  if (destroying === null) return
  const problems = await undoSaga(forkSaga, context, { attempted, failpoints: app.failpoints })
  for (const err of problems) app.log.warn({ err, forkId: fork.id }, 'undo of a failed operation step failed')
  await Promise.all(destroying.map((unit) => runOperation(app, unit, destroyOperation)))
}

async function lastLinesOf({ app, copies }: ForkContext): Promise<Map<string, LogLine[]>> {
  return new Map(
    await Promise.all(copies.map(async ({ unit }) => [unit.id, await readLastLines(app, unit)] as const)),
  )
}

/**
 * Returns the source that was or is being destroyed, which then explains any error of the engine; null if there is
 * none.
 */
async function findSourceGone({ app, fork: { teamId }, copies }: ForkContext): Promise<UnitRecord | null> {
  const ids = copies.map(({ unit }) => sourceOf(unit))
  const sources = await listUnitsByIds(app.db, { teamId, ids, now: app.clock.now() })
  return sources.find(({ state }) => state === 'destroying' || state === 'destroyed') ?? null
}

function sourceGone({ name }: UnitRecord): string {
  return `"${name}" was destroyed before it could be copied, so nothing came of its fork.`
}

/** A destroy may have come before the machine existed. */
async function removeUnwanted(app: App, copies: OperationContext[]): Promise<void> {
  await Promise.all(
    copies.map(async ({ unit }) => {
      const { id } = unit
      const now = await findUnitOfAnyTeam(app.db, { id, now: app.clock.now() })
      if (!now || ['destroying', 'destroyed', 'error'].includes(now.state))
        await app.fleet.engineOf(unit).destroy(id)
    }),
  )
}

/** A fork uses its running sources while it lasts; sleeping ones keep sleeping (design 4). */
async function whileUsed<T>(app: App, sources: UnitRecord[], work: () => Promise<T>): Promise<T> {
  const ids = sources.filter(({ state }) => state === 'running').map(({ id }) => id)
  const ends = ids.map((id) => app.activity.uses.begin(id))
  try {
    if (ids.length > 0) await recordUses(app, ids)
    return await work()
  } finally {
    for (const endUse of ends) endUse()
  }
}

function isToRun({ stoppedReason }: UnitRecord): boolean {
  return stoppedReason === null
}

function endTriggerOf({ stoppedReason }: UnitRecord): 'ready' | 'copiedAsleep' | 'copiedStopped' {
  if (stoppedReason === null) return 'ready'
  return stoppedReason === 'idle' ? 'copiedAsleep' : 'copiedStopped'
}

function sourceOf({ id, forkedFrom }: UnitRecord): string {
  if (forkedFrom === null) throw new Error(`${id} is no copy`)
  return forkedFrom
}
