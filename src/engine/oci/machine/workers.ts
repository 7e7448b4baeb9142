// The workers of a machine (exec/workers.ts).

import type { PassThrough } from 'node:stream'
import type { OnOutput } from '../kernel/pipes.ts'
import type { Attempt } from '../runtime/attempt.ts'

export type Worker = {
  /** What it was started as: one of the same answers the same. */
  described: string
  generation: number
  attempt: Attempt
  input: PassThrough
  /** Null: it waits for a request. */
  asked: { onOutput: OnOutput; onAnswered: () => void } | null
  /** It ends, or has ended. */
  isOver: boolean
  kill: () => Promise<void>
  /** Ends it when no request came. */
  expiry?: NodeJS.Timeout
}
