// An engine whose host can be away. While it is, every call fails at once with the error that says so, and so does what was
// under way and ended because of it.

import type { Engine } from './engine.ts'
import { EngineError, isEngineError } from './errors.ts'

const streams: ReadonlySet<string> = new Set<keyof Engine>(['followLogs', 'followProcess'])

type Method = (...args: unknown[]) => unknown

/** `away` returns the error of calls while the host is away, else null. */
export function guardEngine(engine: Engine, away: () => Error | null): Engine {
  const translate = (error: unknown): never => {
    const gone = away()
    // Another server has called it: for callers it is away, and the job that looks after hosts says why.
    const isTakenOver = isEngineError(error, 'stale_caller')
    if (isTakenOver) throw gone ?? new EngineError('engine_away', 'The host of this unit cannot be used.')
    throw gone && isEngineError(error, 'engine_away') ? gone : error
  }

  async function call(method: Method, args: unknown[]): Promise<unknown> {
    const gone = away()
    if (gone) throw gone
    return await Promise.resolve(method.apply(engine, args)).catch(translate)
  }

  async function* stream(method: Method, args: unknown[]): AsyncGenerator<unknown> {
    const gone = away()
    if (gone) throw gone
    try {
      yield* method.apply(engine, args) as AsyncIterable<unknown>
    } catch (error) {
      translate(error)
    }
  }

  return new Proxy(engine, {
    get: (target, name: keyof Engine) => {
      const method = target[name] as Method
      const guarded = streams.has(name) ? stream : call
      return (...args: unknown[]) => guarded(method, args)
    },
  })
}
