// A sequence of steps with effects outside the database, each idempotent, some with an undo. A crash in the
// middle is met by running the same list again from its start.

export type Step<Context> = {
  name: string
  run: (context: Context) => Promise<void>
  /** Takes back what the step did or had begun to do; succeeds where there is nothing to take back. */
  undo?: (context: Context) => Promise<void>
}

export class StepFailed<Context> extends Error {
  readonly step: string
  /** The failed step and those before it, last first: what there is to undo. */
  readonly reached: Step<Context>[]

  constructor(step: string, reached: Step<Context>[], cause: unknown) {
    super(`the step ${step} failed`, { cause })
    this.step = step
    this.reached = reached
  }
}

/** Runs the steps in order. Throws StepFailed and undoes nothing: the caller first settles what it means. */
export async function runSteps<Context>(steps: readonly Step<Context>[], context: Context): Promise<void> {
  for (const [index, step] of steps.entries()) {
    try {
      await step.run(context)
    } catch (cause) {
      throw new StepFailed(step.name, steps.slice(0, index + 1).reverse(), cause)
    }
  }
}

/** Undoes what was reached. One undo that fails does not keep the others from running; they are answered. */
export async function undoSteps<Context>(reached: Step<Context>[], context: Context): Promise<unknown[]> {
  const failures: unknown[] = []
  for (const step of reached) {
    try {
      await step.undo?.(context)
    } catch (error) {
      failures.push(error)
    }
  }
  return failures
}
