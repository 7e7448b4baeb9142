// A sequence of named, idempotent steps with effects outside the database, some with an undo. After a crash the same
// sequence runs again from its last checkpoint.

import type { Failpoints } from './failpoints.ts'

export type Step<Context> = {
  name: string
  run: (context: Context) => Promise<void>
  /** Undoes what the step did or began to do; succeeds if there is nothing to undo. */
  undo?: (context: Context) => Promise<void>
  /** Progress is saved after this step: after a crash it and the steps before it are not repeated. */
  checkpoint?: true
}

export type Saga<Context> = { name: string; steps: readonly Step<Context>[] }

export type Journal = {
  /** Names of the steps that are already done. */
  done: readonly string[]
  /** Saves the names of the steps done so far. Throws if the sequence must not go on. */
  save: (done: string[]) => Promise<void>
}

export class StepFailed<Context> extends Error {
  readonly step: string
  /** The failed step and those before it, in reverse order: the steps to undo. */
  readonly attempted: Step<Context>[]

  constructor(step: string, reached: Step<Context>[], cause: unknown) {
    super(`the step ${step} failed`, { cause })
    this.step = step
    this.attempted = reached
  }
}

/** Runs the steps in order. Throws StepFailed and undoes nothing: the caller first records the failure. */
export async function runSaga<Context>(
  saga: Saga<Context>,
  context: Context,
  { journal, failpoints }: { journal: Journal; failpoints: Failpoints },
): Promise<void> {
  const { name, steps } = saga
  for (const [index, step] of steps.entries()) {
    if (journal.done.includes(step.name)) continue
    const attemptedHere = steps.slice(0, index + 1)
    try {
      await failpoints.effect(`${name}.${step.name}`, () => step.run(context))
      if (step.checkpoint) await journal.save(attemptedHere.map((done) => done.name))
    } catch (cause) {
      throw new StepFailed(step.name, attemptedHere.reverse(), cause)
    }
  }
}

/** Undoes the attempted steps. A failing undo does not stop the others; returns the errors. */
export async function undoSaga<Context>(
  saga: Saga<Context>,
  context: Context,
  { attempted, failpoints }: { attempted: readonly Step<Context>[]; failpoints: Failpoints },
): Promise<unknown[]> {
  const failures: unknown[] = []
  for (const { name, undo } of attempted) {
    if (!undo) continue
    try {
      await failpoints.effect(`${saga.name}.${name}.undo`, () => undo(context))
    } catch (error) {
      failures.push(error)
    }
  }
  return failures
}
