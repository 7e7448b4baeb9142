// The workers of a machine (exec/workers.ts).

import type { PassThrough } from 'node:stream'
import type { OnOutput } from '../kernel/pipes.ts'
import type { Attempt, Outcome } from '../runtime/attempt.ts'

/** A request in progress. What waits for it ends with it: a worker has thousands, and must not keep what each has left. */
export type Asked = {
  onOutput: OnOutput
  settle: (outcome: Outcome | Promise<Outcome>) => void
  failReader: (error: unknown) => void
}

export type Worker = {
  /** What it was started as: one of the same answers the same. */
  described: string
  generation: number
  attempt: Attempt
  input: PassThrough
  /** Null: it waits for a request. */
  asked: Asked | null
  /** It ends, or has ended. */
  isOver: boolean
  kill: () => Promise<void>
  /** Ends it when no request came. */
  expiry?: NodeJS.Timeout
}
