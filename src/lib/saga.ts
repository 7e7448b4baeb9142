// A sequence of named steps with effects outside the database, each idempotent, some with an undo. A crash in
// the middle is met by running the same list again from the last checkpoint.

import type { Failpoints } from './failpoints.ts'

export type Step<Context> = {
  name: string
  run: (context: Context) => Promise<void>
  /** Takes back what the step did or had begun to do; succeeds where there is nothing to take back. */
  undo?: (context: Context) => Promise<void>
  /** Once it is done, progress is written down: after a crash this step and those before it are not repeated. */
  checkpoint?: true
}

export type Saga<Context> = { name: string; steps: readonly Step<Context>[] }

export type Journal = {
  /** Names of steps that need not be done any more. */
  done: readonly string[]
  /** Writes down what is done by now. Throws when the sequence is not wanted any more. */
  save: (done: string[]) => Promise<void>
}

export class StepFailed<Context> extends Error {
  readonly step: string
  /** The failed step and those before it, last first: what there is to undo. */
  readonly attempted: Step<Context>[]

  constructor(step: string, reached: Step<Context>[], cause: unknown) {
    super(`the step ${step} failed`, { cause })
    this.step = step
    this.attempted = reached
  }
}

/** Runs the steps in order. Throws StepFailed and undoes nothing: the caller first settles what it means. */
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

/** Undoes what was reached. One undo that fails does not keep the others from running; they are answered. */
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
