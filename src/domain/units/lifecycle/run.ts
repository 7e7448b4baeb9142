// A run of a unit's machine: the steps that bring it up, shared by create, start and wake, and the way of
// the latter two.

import { nextState } from '../../../contract/states.ts'
import type { MachineRef, RunSpec } from '../../../engine/engine.ts'
import { EngineError, isEngineError } from '../../../engine/errors.ts'
import type { App } from '../../../app.ts'
import { SECOND } from '../../../lib/clock.ts'
import type { Step } from '../../../lib/saga.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { findUnitOfAnyTeam } from '../../../store/units.ts'
import { startInTurn } from '../admission/cold-starts.ts'
import { openBootFiles } from '../model/boot-files.ts'
import { renderEnv } from '../model/env.ts'
import { recordEndOf } from './exits.ts'
import { engineFailure, failureText } from './failures.ts'
import { machineRef } from '../model/machine.ts'
import { searchDomain } from '../model/names.ts'
import { becomesReady } from './readiness.ts'
import { transition } from './transition.ts'
import { undo, type Walk, type Way } from './operation.ts'

/** What the process gets on SIGTERM before it is killed. */
export const STOP_GRACE_MS = 10_000

// Without a checkpoint: whoever resumes asks the engine again, which knows better whether the run is there.
export const startStep: Step<Walk> = {
  name: 'start',
  run: async (walk) => {
    const { app } = walk
    await startInTurn(app, walk.unit, () => startMachine(walk))
    walk.startedMs ??= app.clock.monotonicMs()
  },
  undo: async ({ app, unit }) => await app.engine.stop(machineRef(unit), 0),
}

async function startMachine(walk: Walk): Promise<void> {
  const { app } = walk
  const spec = await runSpec(app, walk.unit)
  const start = async () => (await app.engine.start(machineRef(walk.unit), spec)).resumed
  try {
    walk.resumed = await start()
  } catch (error) {
    if (!isEngineError(error, 'run_lost')) throw error
    await beginAgain(walk, error)
    walk.resumed = await start()
  }
}

/** Another run, in place of the one that came to nothing. Throws that when the unit is not to run any more. */
async function beginAgain(walk: Walk, because: unknown): Promise<void> {
  const again = await transition(walk.app, walk.unit, 'again')
  if (!again) throw because
  walk.unit = again
  walk.startedMs = null
}

export const readyStep: Step<Walk> = {
  name: 'ready',
  run: async (walk) => {
    const isReady = walk.resumed ? await becomesReadyAgain(walk) : await becomesReady(walk.app, walk.unit)
    if (isReady) return
    const { app, unit } = walk
    walk.ended = true
    await recordEndOf(app, unit)
    const now = await findUnitOfAnyTeam(app.db, { id: unit.id, now: app.clock.now() })
    if (now?.state !== unit.state) return
    throw new EngineError(
      'start_failed',
      'Its process ended before it was ready, and the host cannot say how.',
    )
  },
}

/** What goes on with its memory was ready before. */
const READY_AGAIN_MS = 10 * SECOND

/** Memory is never relied on: who has gone on with it and is not ready soon is started anew. */
async function becomesReadyAgain(walk: Walk): Promise<boolean> {
  const { app, unit } = walk
  try {
    return await becomesReady(app, unit, READY_AGAIN_MS)
  } catch (error) {
    if (!isEngineError(error, 'start_failed')) throw error
    app.log.warn({ unitId: unit.id }, 'a unit that kept its memory is not ready, and is started anew')
    await beginAgain(walk, error)
    await startStep.run(walk)
    return await becomesReady(app, walk.unit)
  }
}

// The run before the unit's new one ends as a stop ends it. Whoever resumes after a crash takes the way of a
// start, which kills what is left of it.
const endStep: Step<Walk> = {
  name: 'end',
  run: async ({ app, unit }) => await app.engine.stop(runBefore(unit), STOP_GRACE_MS),
  // Nothing of it may be left where the unit goes then: to sleep.
  undo: async ({ app, unit }) => await app.engine.stop(runBefore(unit), 0),
}

function runBefore({ id, generation }: UnitRecord): MachineRef {
  return { id, generation: generation - 1 }
}

/**
 * A `starting` unit to `running`. One that has run before never ends in `error`: when it does not start it
 * is back where it was, stopped or asleep, its disk untouched, and can be tried again (design 4).
 */
function runAgain(name: string, steps: Step<Walk>[]): Way {
  const way: Way = {
    saga: { name, steps },
    arrive: becomeRunning,
    giveUp: async (context, failed) => {
      const { app, unit } = context
      app.log.warn({ err: failed.cause, unitId: unit.id, step: failed.step }, 'a unit did not start')
      // State first: a process that is killed while its unit still counts as starting would look like an exit.
      const back = nextState(unit, 'startFailed') ? 'startFailed' : 'wakeFailed'
      const set = { error: failureText(failed.cause, unit) }
      if (!(await transition(app, unit, back, { set }))) return
      await undo(way, context, failed.reached)
      throw engineFailure(failed.cause, unit)
    },
  }
  return way
}

export const startWay = runAgain('start', [startStep, readyStep])
/** For a unit that has run until now, and is to have what changed since. */
export const restartWay = runAgain('restart', [endStep, startStep, readyStep])

/** Makes the unit `running`, unless its process has ended or the unit went another way meanwhile. */
export async function becomeRunning({ app, unit, startedMs, ended }: Walk): Promise<void> {
  if (ended || startedMs === null) return
  await transition(app, unit, 'ready', { startedMs })
}

/** What a start of the unit begins with, as its row and its secrets are now. */
export async function runSpec(app: App, unit: UnitRecord): Promise<RunSpec> {
  const [env, files] = await Promise.all([renderEnv(app, unit), openBootFiles(app, unit)])
  return {
    hostname: unit.name,
    entrypoint: unit.spec.entrypoint,
    cmd: unit.spec.cmd,
    env,
    files,
    searchDomain: searchDomain(unit.stackName),
  }
}
