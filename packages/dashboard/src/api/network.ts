// What the browser knows of the network.

/** Aborts as soon as the browser knows that there is no network: the stream itself may fall silent and stay open. */
export function untilOffline(signal: AbortSignal | undefined): { signal: AbortSignal; end: () => void } {
  const over = new AbortController()
  const abort = () => over.abort()
  addEventListener('offline', abort)
  signal?.addEventListener('abort', abort)
  return {
    signal: over.signal,
    end: () => {
      removeEventListener('offline', abort)
      signal?.removeEventListener('abort', abort)
    },
  }
}

/** Waits so long, or until the browser says that there is a network again. */
export async function aWhileOrOnline(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const online = () => resolve()
  addEventListener('online', online, { once: true })
  await promise
  clearTimeout(timer)
  removeEventListener('online', online)
}
