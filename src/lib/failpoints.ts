// Places where a test makes trouble: before, after or around an effect that a crash could tear. The product
// has none switched on; with BERTH_FAILPOINTS set, each place looks for a file of its name in a directory of
// the process's own and does what the file says, once (reliability F1-F3).

import { readFileSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * `block`: the process does nothing else ever again. `twice`: the effect is brought about twice in a row, as
 * after a crash whose first try had succeeded.
 */
export const troubles = ['crash', 'error', 'delay', 'hang', 'block', 'twice'] as const
export type Trouble = (typeof troubles)[number]

export type Failpoints = {
  /** Runs the effect, with the places `<name>.before`, `<name>.after` and, for `twice`, `<name>`. */
  effect<T>(name: string, work: () => Promise<T>): Promise<T>
}

export class FailpointError extends Error {}

export const noFailpoints: Failpoints = { effect: (_name, work) => work() }

/** `take` answers the trouble wanted at a place, and forgets it. `crash` ends the process, or never returns. */
export function createFailpoints(
  take: (place: string) => Trouble | null,
  crash: () => Promise<never>,
): Failpoints {
  const pass = async (place: string): Promise<void> => {
    const trouble = take(place)
    if (trouble === 'crash') await crash()
    if (trouble === 'error') throw new FailpointError(`a test wanted an error at ${place}`)
    if (trouble === 'delay') await delay(DELAY_MS)
    if (trouble === 'hang') await new Promise<never>(() => {})
    if (trouble === 'block') blockForEver()
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

/** The product's, when a test has switched them on: files of `directory`, consumed as they are met. */
export function fileFailpoints(directory: string): Failpoints {
  return createFailpoints(
    (place) => {
      const path = join(directory, place)
      try {
        const text = readFileSync(path, 'utf8').trim()
        unlinkSync(path)
        return troubles.find((trouble) => trouble === text) ?? null
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
