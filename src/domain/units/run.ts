// A run of a unit's machine: the steps that bring it up, shared by create, start and wake, and the way of
// the latter two.

import { nextState } from '../../contract/states.ts'
import type { MachineRef, RunSpec } from '../../engine/engine.ts'
import { EngineError, isEngineError } from '../../engine/errors.ts'
import type { App } from '../../app.ts'
import type { Step } from '../../lib/saga.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnitOfAnyTeam } from '../../store/units.ts'
import { startInTurn } from './admission.ts'
import { openBootFiles } from './boot-files.ts'
import { renderEnv } from './env.ts'
import { recordEndOf } from './exits.ts'
import { engineFailure, failureText } from './failures.ts'
import { machineRef } from './machine.ts'
import { searchDomain } from './names.ts'
import { becomesReady } from './readiness.ts'
import { transition } from './transition.ts'
import { undo, type Walk, type Way } from './way.ts'

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
  try {
    await app.engine.start(machineRef(walk.unit), spec)
  } catch (error) {
    if (!isEngineError(error, 'run_lost')) throw error
    const again = await transition(app, walk.unit, 'again')
    if (!again) throw error
    walk.unit = again
    walk.startedMs = null
    await app.engine.start(machineRef(again), spec)
  }
}

export const readyStep: Step<Walk> = {
  name: 'ready',
  run: async (walk) => {
    const { app, unit } = walk
    if (await becomesReady(app, unit)) return
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

async function runSpec(app: App, unit: UnitRecord): Promise<RunSpec> {
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
