// The state that this engine has of a background process (held.ts).

import type { Socket } from 'node:net'
import type { Keeper } from './keeper.ts'
import type { ProcessRecord } from './record.ts'
import type { Ring } from './ring.ts'
import type { Report } from './wrapper.ts'

export type Held = {
  record: ProcessRecord
  ring: Ring
  /** Settles when it has started, or failed to. */
  begun: Promise<void>
  /** Set while it runs, or until its end is recorded. */
  keeper: Keeper | null
  /** Holds the writing end of its input, while that is open to calls. */
  input: Keeper | null
  /** Settles when all calls so far have written to its input. */
  written: Promise<unknown>
  readers: Readers | null
  /** It ended while no engine ran, and has not reported how. */
  unheard: boolean
  /** Its end is being recorded. */
  ending: boolean
  /** Resolves when its end has been recorded. */
  settled: PromiseWithResolvers<void>
  /** Settles at the next output or change of state, and is then replaced. */
  changed: PromiseWithResolvers<void>
}

export type Readers = {
  outputs: Output[]
  report: Socket
  said: () => Report
  /** Resolves once its pid is known, or the report is closed. */
  begun: Promise<void>
  /** Resolves once the process has reported how it ended, or no report can come any more. */
  reportOver: Promise<void>
}

/** `fd`: of the socket, and another's once that is destroyed. */
export type Output = { socket: Socket; fd: number; taken: number; failed: boolean }
