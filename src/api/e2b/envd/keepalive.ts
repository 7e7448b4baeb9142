// Between the values of a silent stream: a word that it is still there, as often as the client asked.

import type { RpcCall } from './rpc.ts'

export async function* withKeepalive<T>(
  { app, keepaliveMs }: Pick<RpcCall, 'app' | 'keepaliveMs'>,
  values: AsyncIterable<T>,
): AsyncGenerator<T | 'keepalive'> {
  const source = values[Symbol.asyncIterator]()
  let next = source.next()
  next.catch(() => {})
  try {
    for (;;) {
      const over = new AbortController()
      const silent = app.clock.sleep(keepaliveMs, over.signal).then(
        () => 'keepalive' as const,
        () => 'keepalive' as const,
      )
      const first = await Promise.race([next, silent]).finally(() => over.abort())
      if (first === 'keepalive') {
        yield 'keepalive'
        continue
      }
      if (first.done) return
      next = source.next()
      next.catch(() => {})
      yield first.value
    }
  } finally {
    await source.return?.()
  }
}
