// Detects that another process has stopped sending messages.

export type Watchdog = {
  /** A message arrived. */
  reset(): void
  /** Sets how long silence may last; null ends the watch. */
  limit(ms: number | null): void
}

/** After this process itself was suspended, pending messages are read within this time and end the silence. */
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
