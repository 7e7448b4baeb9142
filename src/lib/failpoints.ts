// Failpoints: places before, after or around an effect where a test can inject a fault. They are off in production;
// with BERTH_FAILPOINTS set, each place looks for a file of its name in a directory of the process, and injects the
// fault in it once (reliability F1-F3).

import { readFileSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * `block`: the process stops doing anything. `twice`: the effect runs twice in a row, as after a crash whose first
 * attempt had succeeded.
 */
export const faults = ['crash', 'error', 'delay', 'hang', 'block', 'twice'] as const
export type Fault = (typeof faults)[number]

export type Failpoints = {
  /** Runs the effect, with the failpoints `<name>.before`, `<name>.after` and, for `twice`, `<name>`. */
  effect<T>(name: string, work: () => Promise<T>): Promise<T>
}

export class FailpointError extends Error {}

export const noFailpoints: Failpoints = { effect: (_name, work) => work() }

/** `take` returns the fault set at a place, and clears it. `crash` ends the process, or never returns. */
export function createFailpoints(
  take: (place: string) => Fault | null,
  crash: () => Promise<never>,
): Failpoints {
  const pass = async (place: string): Promise<void> => {
    const fault = take(place)
    if (fault === 'crash') await crash()
    if (fault === 'error') throw new FailpointError(`a test wanted an error at ${place}`)
    if (fault === 'delay') await delay(DELAY_MS)
    if (fault === 'hang') await new Promise<never>(() => {})
    if (fault === 'block') blockForEver()
  }
  return {
    effect: async (name, work) => {
      await pass(`${name}.before`)
      if (take(name) === 'twice') await work()
      const result = await work()
      await pass(`${name}.after`)
      return result
    },
  }
}

const DELAY_MS = 2000

function blockForEver(): never {
  for (;;);
}

/** Failpoints of a running process: files in `directory`, each deleted when it is used. */
export function fileFailpoints(directory: string): Failpoints {
  return createFailpoints(
    (place) => {
      const path = join(directory, place)
      try {
        const text = readFileSync(path, 'utf8').trim()
        unlinkSync(path)
        return faults.find((fault) => fault === text) ?? null
      } catch {
        return null
      }
    },
    async () => {
      process.kill(process.pid, 'SIGKILL')
      return await new Promise<never>(() => {})
    },
  )
}
