// A wait that something ends early. What happens before the wait counts too, until it is forgotten.

import type { Clock } from '../clock.ts'

export type Notice = {
  /** It has happened: ends the wait. */
  notify(): void
  /** What has happened until now does not count. */
  forget(): void
  /** Resolves after `ms`, or sooner: once it happens, at once if it has, or when the signal aborts. Never rejects. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
}

/** For one waiter at a time. */
export function createNotice(clock: Clock): Notice {
  let happened = false
  let wake = () => {}
  return {
    notify() {
      happened = true
      wake()
    },
    forget() {
      happened = false
    },
    async wait(ms, signal) {
      if (happened || signal?.aborted) return
      const woken = new AbortController()
      wake = () => woken.abort()
      const end = signal ? AbortSignal.any([signal, woken.signal]) : woken.signal
      await clock.sleep(ms, end).catch(() => {})
      wake = () => {}
    },
  }
}
