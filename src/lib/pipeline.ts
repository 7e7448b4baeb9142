// A list of named steps that one piece of work goes through in order. Each step returns what it has found out, and the
// steps after it are given that too, by type: an order in which a step lacks what it needs does not compile.

export type Pipeline<Begun extends object, Known extends Begun> = {
  /** In the order in which they run. */
  readonly names: readonly string[]
  /** The same list with one more step at its end. A step that only checks something returns nothing. */
  step<Found extends object | void>(
    name: string,
    run: (known: Known) => Found | Promise<Found>,
  ): Pipeline<Begun, Found extends object ? Known & Found : Known>
  /** Runs all steps, and adds to `work` what each has found out. Throws what the first that fails throws; none runs after it. */
  run(work: Begun & Partial<Known>): Promise<void>
}

type AnyStep = { name: string; run: (known: never) => unknown }

/** A list without steps, for work of which `Begun` is known when it begins. */
export function pipeline<Begun extends object>(): Pipeline<Begun, Begun> {
  return withSteps<Begun, Begun>([])
}

function withSteps<Begun extends object, Known extends Begun>(
  steps: readonly AnyStep[],
): Pipeline<Begun, Known> {
  return {
    names: steps.map(({ name }) => name),
    step: (name, run) => withSteps([...steps, { name, run }]),
    run: async (work) => {
      for (const { run } of steps) {
        const found = run(work as never)
        // Most steps only check something, and a wait for nothing costs a turn of its own.
        Object.assign(work, found instanceof Promise ? await found : found)
      }
    },
  }
}
