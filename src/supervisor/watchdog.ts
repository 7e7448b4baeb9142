// Notices that somebody who should be heard from now and then has fallen silent.

export type Watchdog = {
  /** Something was heard. */
  reset(): void
  /** Silence is that long from now on; null ends the watch. */
  limit(ms: number | null): void
}

/** What has been said while this very process stood still is read within this, and then it was no silence. */
const CATCH_UP_MS = 1000

export function createWatchdog(limitMs: number, onSilence: () => void): Watchdog {
  let current: number | null = limitMs
  let timer: NodeJS.Timeout
  const listenOnce = () => {
    timer = setTimeout(onSilence, CATCH_UP_MS)
  }
  const reset = () => {
    clearTimeout(timer)
    if (current !== null) timer = setTimeout(listenOnce, current)
  }
  reset()
  return {
    reset,
    limit: (ms) => {
      current = ms
      reset()
    },
  }
}
