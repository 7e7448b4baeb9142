// Supervises one service of Berth: restarts it when it ends, with growing delays, and gives up when it fails to start
// too often.

import { type Clock, SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

export type Running = {
  /** Resolves with how it ended, as the end of the sentence "the server …". */
  ended: Promise<string>
  stop(): Promise<void>
}

export type Service = {
  name: string
  /** Resolves once it is ready; throws a sentence if it cannot start. Aborting ends the attempt. */
  start(signal: AbortSignal): Promise<Running>
}

export type SupervisedService = {
  name: string
  /** Resolves, with a sentence, when the service has been given up. Never after stop(). */
  failed: Promise<string>
  stop(): Promise<void>
}

const FIRST_WAIT_MS = SECOND / 4
const LONGEST_WAIT_MS = 30 * SECOND
/** A service that ran this long has recovered: its next failure counts as the first. */
const RECOVERED_AFTER_MS = 10 * SECOND
/** In a row; with the delays between them that is about three minutes. */
const MAX_FAILED_STARTS = 10

/** The first start must succeed: its error is thrown. Afterwards the service is supervised until stop(). */
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
      log.error({ part: part.name, how }, 'service ended and is restarted')
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
        log.error({ part: part.name, error: String(error) }, 'service could not be restarted')
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

/** Doubles: 0.25, 0.5, 1, … 30 seconds. */
export function waitAfter(failures: number): number {
  return Math.min(FIRST_WAIT_MS * 2 ** failures, LONGEST_WAIT_MS)
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
