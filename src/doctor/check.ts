// A check examines one property of the host. Its finding says in one sentence what it found and what to do.

import type { Config } from '../config.ts'

export type Finding =
  | { state: 'ok'; detail: string }
  /** `warn`: Berth works, but less well or less safely. `fail`: Berth does not start. */
  | { state: 'warn' | 'fail'; detail: string; advice: string }

export type Check = { name: string; run(config: Config): Promise<Finding> }

export const ok = (detail: string): Finding => ({ state: 'ok', detail })
export const warn = (detail: string, advice: string): Finding => ({ state: 'warn', detail, advice })
export const fail = (detail: string, advice: string): Finding => ({ state: 'fail', detail, advice })

/** A check that throws counts as a warning. */
export async function runCheck(check: Check, config: Config): Promise<Finding> {
  try {
    return await check.run(config)
  } catch (error) {
    return warn(`could not be checked: ${String(error)}`, 'Check it by hand.')
  }
}
