// Scripted trouble: what a test wants an operation to do instead of working. Every call of the fake passes
// through `run` here, which also keeps the log of calls and lets a crash end all that is in flight.

import type { Clock } from '../../../src/lib/clock.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import { EngineError, type EngineErrorKind } from '../../../src/engine/errors.ts'

export type Operation = keyof Engine

/** What was asked of the engine, without anything that could be secret. */
export type Call = { operation: Operation; id: string | null; generation: number | null }

export type FaultOptions = {
  /** How many calls it hits. Default 1. */
  times?: number
  /** `after`: the effect happens and only its answer is lost. Default `before`. */
  when?: 'before' | 'after'
}

type Fault = { when: 'before' | 'after'; left: number; happen: (gone: AbortSignal) => Promise<void> }

export type Faults = {
  calls: Call[]
  add(operation: Operation, options: FaultOptions, happen: Fault['happen']): void
  /** `work` gets a signal that aborts when the engine crashes or the caller gives up. */
  run<T>(call: Call, work: (gone: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T>
  heal(operation: Operation): void
  crash(): void
}

export function createFaults(): Faults {
  const calls: Call[] = []
  const scripted = new Map<Operation, Fault[]>()
  let life = new AbortController()

  async function strike(operation: Operation, when: Fault['when'], gone: AbortSignal): Promise<void> {
    const faults = scripted.get(operation) ?? []
    for (const fault of faults.filter((each) => each.when === when && each.left > 0)) {
      fault.left -= 1
      await fault.happen(gone)
    }
  }

  return {
    calls,
    add(operation, { times = 1, when = 'before' }, happen) {
      scripted.set(operation, [...(scripted.get(operation) ?? []), { when, left: times, happen }])
    },
    async run(call, work, signal) {
      calls.push(call)
      const gone = signal ? AbortSignal.any([life.signal, signal]) : life.signal
      return await untilAborted(gone, async () => {
        await strike(call.operation, 'before', gone)
        const result = await work(gone)
        await strike(call.operation, 'after', gone)
        return result
      })
    },
    heal: (operation) => void scripted.delete(operation),
    crash() {
      life.abort(new EngineError('engine_away', 'The engine went away.'))
      life = new AbortController()
    },
  }
}

export function failing(failure: EngineErrorKind | Error): Fault['happen'] {
  return async () => {
    throw failure instanceof Error
      ? failure
      : new EngineError(failure, `The engine was told to fail: ${failure}.`)
  }
}

export function hanging(released: Promise<void>): Fault['happen'] {
  return async () => await released
}

export function slow(clock: Clock, ms: number): Fault['happen'] {
  return async (gone) => await clock.sleep(ms, gone)
}

/** The outcome of `work`, or a rejection with the signal's reason as soon as it aborts. */
export async function untilAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted()
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work(), aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
