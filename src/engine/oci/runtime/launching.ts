// Commands that the runtime is at starting in a machine. A freeze would stop the runtime half way through: it would wait
// until the machine is thawed, and the memory of the machine could not be dumped, since its processes are in part those
// of the runtime. So a freeze first waits for them.

import type { Clock } from '../../../lib/clock.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'

/** Commands of one machine that the runtime is at starting. They never reject. */
export type Launching = Set<Promise<unknown>>

/** The runtime usually takes 50 ms. */
const LAUNCH_TIMEOUT_MS = 3000

/** Remembers that a command is being started until `launched` settles. */
export function trackLaunch(launching: Launching, launched: Promise<unknown>): void {
  const settled = launched.then(
    () => {},
    () => {},
  )
  launching.add(settled)
  void settled.then(() => launching.delete(settled))
}

/** Waits for a limited time until no command is being started. Call it when the machine accepts no new ones. */
export async function waitForLaunches(clock: Clock, launching: Launching): Promise<void> {
  if (launching.size > 0) await completesWithin(clock, LAUNCH_TIMEOUT_MS, Promise.all(launching))
}
