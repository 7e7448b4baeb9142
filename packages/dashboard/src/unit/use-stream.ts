// Reads a stream of a unit while the page is visible. A stream that was lost is opened again by itself, and the page says so.

import { useEffect, useRef, useState } from 'react'
import { aWhileOrOnline, untilOffline } from '../api/network.ts'
import { isPassing } from '../api/passing-error.ts'
import { useVisible } from './use-visible.ts'

export type StreamStatus =
  | { is: 'reading' }
  | { is: 'following' }
  /** The run is over, or the unit is destroyed. */
  | { is: 'ended' }
  /** It is tried again. */
  | { is: 'lost'; since: number }
  | { is: 'failed'; error: unknown }

type Stream<T> = {
  /** A promise is kept when the response begins: from then on the stream is followed, even if nothing comes. */
  open: (signal: AbortSignal) => AsyncIterable<T> | Promise<AsyncIterable<T>>
  /** May let the stream wait. */
  hear: (item: T) => void | Promise<void>
}

const AGAIN_MS = { first: 1000, longest: 15_000 }
const reading: StreamStatus = { is: 'reading' }
const following: StreamStatus = { is: 'following' }

/** Opens the stream again where the key is another. */
export function useStream<T>(key: string, stream: Stream<T>) {
  const [status, setStatus] = useState(reading)
  const [attempt, setAttempt] = useState(0)
  const isVisible = useVisible()
  const latest = useRef(stream)
  latest.current = stream

  // biome-ignore lint/correctness/useExhaustiveDependencies: another key or attempt begins again.
  useEffect(() => {
    if (!isVisible) return
    const over = new AbortController()
    void follow(() => latest.current, setStatus, over.signal)
    return () => over.abort()
  }, [key, attempt, isVisible])

  const again = () => {
    setStatus(reading)
    setAttempt(attempt + 1)
  }
  return { status, again }
}

async function follow<T>(
  latest: () => Stream<T>,
  say: (status: StreamStatus) => void,
  signal: AbortSignal,
): Promise<void> {
  let lostSince: number | null = null
  const isLive = () => {
    lostSince = null
    say(following)
  }
  for (let waitMs = AGAIN_MS.first; ; waitMs = Math.min(waitMs * 2, AGAIN_MS.longest)) {
    const network = untilOffline(signal)
    try {
      const opened = latest().open(network.signal)
      const items = opened instanceof Promise ? await opened : opened
      if (opened instanceof Promise && !signal.aborted) isLive()
      for await (const item of items) {
        if (signal.aborted) return
        isLive()
        waitMs = AGAIN_MS.first
        await latest().hear(item)
      }
      return say({ is: 'ended' })
    } catch (error) {
      if (signal.aborted) return
      if (!isPassing(error) && !network.signal.aborted) return say({ is: 'failed', error })
      lostSince ??= Date.now()
      say({ is: 'lost', since: lostSince })
    } finally {
      network.end()
    }
    await aWhileOrOnline(waitMs)
    if (signal.aborted) return
  }
}
