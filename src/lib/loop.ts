// Work that repeats until it is told to stop. A failed run is logged and the next one is tried: each run reads the store
// again, so nothing is lost. A run that exceeds its timeout is left behind, since runs may overlap; a loop whose runs all
// time out throws, because something in the process must be stuck.

import { type Clock, SECOND } from './clock.ts'
import type { Log } from './log.ts'

export type Loop = { name: string; everyMs: number; timeoutMs: number; run: () => Promise<void> }

/** After this many timeouts in a row the loop throws. */
const MAX_HUNG_RUNS = 3
/**
 * The timeout is counted in intervals of this length, so that a suspend of the process does not count as a hung run.
 */
const CHECK_EVERY_MS = 5 * SECOND

/** Resolves when the signal aborts and the run in progress has ended. Throws after MAX_HUNG_RUNS timeouts in a row. */
export async function runLoop(
  loop: Loop,
  { clock, log, signal }: { clock: Clock; log: Log; signal: AbortSignal },
): Promise<void> {
  let hung = 0
  while (!signal.aborted) {
    const run = runOnce(loop, log)
    const isHung = !(await endsWithin(loop.timeoutMs, run, clock))
    hung = isHung ? hung + 1 : 0
    if (isHung) log.error({ loop: loop.name, hung }, 'job iteration timed out')
    if (hung >= MAX_HUNG_RUNS) throw new Error(`${hung} runs in a row of the job "${loop.name}" timed out`)
    // An abort ends the pause early, without an error.
    await clock.sleep(loop.everyMs, signal).catch(() => {})
  }
}

async function runOnce(loop: Loop, log: Log): Promise<void> {
  try {
    await loop.run()
  } catch (error) {
    log.error({ loop: loop.name, err: error }, 'job iteration failed')
  }
}

async function endsWithin(ms: number, run: Promise<void>, clock: Clock): Promise<boolean> {
  const ended = new AbortController()
  void run.then(() => ended.abort())
  for (let leftMs = ms; leftMs > 0 && !ended.signal.aborted; leftMs -= CHECK_EVERY_MS) {
    await clock.sleep(Math.min(leftMs, CHECK_EVERY_MS), ended.signal).catch(() => {})
  }
  return ended.signal.aborted
}
