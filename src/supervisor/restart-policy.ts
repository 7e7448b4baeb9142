// Keeps one part of Berth running: starts it again when it ends, waiting longer each time it fails, and gives
// up when it cannot come back. Never a tight loop.

import { type Clock, SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

export type Running = {
  /** Resolves with how it ended, as an end of the sentence "the server …". */
  ended: Promise<string>
  stop(): Promise<void>
}

export type Service = {
  name: string
  /** Answers once it is ready to work; throws a sentence when it cannot. Aborting ends the attempt. */
  start(signal: AbortSignal): Promise<Running>
}

export type SupervisedService = {
  name: string
  /** Resolves, with a sentence, when the part has been given up. Never after stop(). */
  failed: Promise<string>
  stop(): Promise<void>
}

const FIRST_WAIT_MS = SECOND / 4
const LONGEST_WAIT_MS = 30 * SECOND
/** A part that ran this long has recovered: its next failure counts as the first. */
const RECOVERED_AFTER_MS = 10 * SECOND
/** In a row, with the waits between them about three minutes. */
const MAX_FAILED_STARTS = 10

/** The first start must succeed: its error is thrown. From then on the part is kept running until stop(). */
export async function superviseService(
  part: Service,
  { clock, log, signal }: { clock: Clock; log: Log; signal: AbortSignal },
): Promise<SupervisedService> {
  let running = await part.start(signal)
  const stopping = new AbortController()
  const givenUp = Promise.withResolvers<string>()

  const watch = async () => {
    let failures = 0
    for (;;) {
      const startedAt = clock.monotonicMs()
      const how = await running.ended
      if (stopping.signal.aborted) return
      if (clock.monotonicMs() - startedAt >= RECOVERED_AFTER_MS) failures = 0
      log.error({ part: part.name, how }, 'a part ended and is started again')
      const next = await startAgain(() => failures++)
      if (!next) return
      running = next
    }
  }

  const startAgain = async (countFailure: () => number): Promise<Running | null> => {
    for (let failedStarts = 1; ; failedStarts++) {
      try {
        await clock.sleep(waitAfter(countFailure()), stopping.signal)
        const started = await part.start(stopping.signal)
        if (!stopping.signal.aborted) return started
        await started.stop()
        return null
      } catch (error) {
        if (stopping.signal.aborted) return null
        log.error({ part: part.name, error: String(error) }, 'a part could not be started again')
        if (failedStarts < MAX_FAILED_STARTS) continue
        givenUp.resolve(
          `The ${part.name} could not be started ${MAX_FAILED_STARTS} times in a row: ${message(error)}`,
        )
        return null
      }
    }
  }

  const watched = watch()
  return {
    name: part.name,
    failed: givenUp.promise,
    stop: async () => {
      stopping.abort()
      await running.stop()
      await watched
    },
  }
}

/** Doubling: 0.25, 0.5, 1, … 30 seconds. */
export function waitAfter(failures: number): number {
  return Math.min(FIRST_WAIT_MS * 2 ** failures, LONGEST_WAIT_MS)
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
