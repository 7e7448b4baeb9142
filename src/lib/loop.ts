// Work that repeats until it is told to stop. A failing round is logged and the next one tried: what a loop
// does reads the store anew each time, so nothing is lost with a round. A round that hangs is left behind, as
// rounds may run twice; a loop whose rounds all hang throws, since something in the process must be stuck.

import { type Clock, SECOND } from './clock.ts'
import type { Log } from './log.ts'

export type Loop = { name: string; everyMs: number; longestMs: number; run: () => Promise<void> }

/** In a row: then the loop throws. */
const MOST_HUNG_ROUNDS = 3
/** A process that stood still itself for a while finds time gone, and must not take its rounds for hung. */
const LOOK_EVERY_MS = 5 * SECOND

/** Resolves when the signal aborts and the round under way has ended. Rounds do not overlap, hung ones aside. */
export async function runLoop(
  loop: Loop,
  { clock, log, signal }: { clock: Clock; log: Log; signal: AbortSignal },
): Promise<void> {
  let hung = 0
  while (!signal.aborted) {
    const round = runRound(loop, log)
    const isHung = !(await endsWithin(loop.longestMs, round, clock))
    hung = isHung ? hung + 1 : 0
    if (isHung) log.error({ loop: loop.name, hung }, 'a round of a loop hangs and is left behind')
    if (hung >= MOST_HUNG_ROUNDS) throw new Error(`${hung} rounds of the loop "${loop.name}" hang`)
    // An abort ends the pause early; that is no failure.
    await clock.sleep(loop.everyMs, signal).catch(() => {})
  }
}

async function runRound(loop: Loop, log: Log): Promise<void> {
  try {
    await loop.run()
  } catch (error) {
    log.error({ loop: loop.name, err: error }, 'a round of a loop failed')
  }
}

async function endsWithin(ms: number, round: Promise<void>, clock: Clock): Promise<boolean> {
  const ended = new AbortController()
  void round.then(() => ended.abort())
  for (let leftMs = ms; leftMs > 0 && !ended.signal.aborted; leftMs -= LOOK_EVERY_MS) {
    await clock.sleep(Math.min(leftMs, LOOK_EVERY_MS), ended.signal).catch(() => {})
  }
  return ended.signal.aborted
}
