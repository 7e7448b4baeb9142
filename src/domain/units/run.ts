// A run of a unit's machine: the steps that bring it up, shared by create and start.

import type { App } from '../../app.ts'
import type { RunSpec } from '../../engine/engine.ts'
import { EngineError } from '../../engine/errors.ts'
import type { Step } from '../../lib/saga.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnitOfAnyTeam } from '../../store/units.ts'
import { openBootFiles } from './boot-files.ts'
import { renderEnv } from './env.ts'
import { recordEndOf } from './exits.ts'
import { machineRef } from './machine.ts'
import { searchDomain } from './names.ts'
import { becomesReady } from './readiness.ts'
import { transition } from './transition.ts'

/** What the process gets on SIGTERM before it is killed. */
export const STOP_GRACE_MS = 10_000

export type RunContext = {
  app: App
  unit: UnitRecord
  /** When the machine's process was started, as far as the saga has come. */
  startedAt: Date | null
  /** The process ended on its own before it was ready; that is no failure of ours. */
  ended: boolean
}

export const startStep: Step<RunContext> = {
  name: 'start',
  run: async (context) => {
    const { app, unit } = context
    await app.engine.start(machineRef(unit), await runSpec(app, unit))
    context.startedAt = app.clock.now()
  },
  undo: async ({ app, unit }) => await app.engine.stop(machineRef(unit), 0),
}

export const readyStep: Step<RunContext> = {
  name: 'ready',
  run: async (context) => {
    const { app, unit } = context
    if (await becomesReady(app, unit)) return
    context.ended = true
    await recordEndOf(app, unit)
    const now = await findUnitOfAnyTeam(app.db, { id: unit.id, now: app.clock.now() })
    if (now?.state !== unit.state) return
    throw new EngineError(
      'start_failed',
      'Its process ended before it was ready, and the host cannot say how.',
    )
  },
}

/** Makes the unit `running`, unless its process has ended or the unit went another way meanwhile. */
export async function finishRun({ app, unit, startedAt, ended }: RunContext): Promise<void> {
  if (ended || !startedAt) return
  await transition(app, unit, 'ready', { runAt: startedAt, set: { startedAt } })
}

/** What could not be undone the reconciler takes care of: it removes and stops machines nobody wants. */
export function logUndo(app: App, unit: UnitRecord, problems: unknown[]): void {
  for (const err of problems) app.log.warn({ err, unitId: unit.id }, 'a failure was not undone at once')
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
