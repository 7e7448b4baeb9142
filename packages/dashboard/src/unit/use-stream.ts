// Reads a stream of a unit while the page is visible. A stream that was lost is opened again by itself, and the page says so.

import { useEffect, useRef, useState } from 'react'
import { isPassing } from '../api/passing-error.ts'
import { useVisible } from './use-visible.ts'

export type StreamStatus =
  | { is: 'reading' }
  | { is: 'following' }
  /** The unit is destroyed. */
  | { is: 'ended' }
  /** It is tried again. */
  | { is: 'lost' }
  | { is: 'failed'; error: unknown }

type Stream<T> = {
  open: (signal: AbortSignal) => AsyncIterable<T>
  hear: (item: T) => void
  /** A stream that may have nothing to say is followed after so long without a fault. */
  quietMs?: number
}

const AGAIN_MS = { first: 1000, longest: 15_000 }

/** Opens the stream again where the key is another. */
export function useStream<T>(key: string, stream: Stream<T>) {
  const [status, setStatus] = useState<StreamStatus>({ is: 'reading' })
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
    setStatus({ is: 'reading' })
    setAttempt(attempt + 1)
  }
  return { status, again }
}

async function follow<T>(
  latest: () => Stream<T>,
  say: (status: StreamStatus) => void,
  signal: AbortSignal,
): Promise<void> {
  for (let waitMs = AGAIN_MS.first; ; waitMs = Math.min(waitMs * 2, AGAIN_MS.longest)) {
    const { open, quietMs } = latest()
    const quiet = quietMs && setTimeout(() => say({ is: 'following' }), quietMs)
    try {
      for await (const item of open(signal)) {
        if (signal.aborted) return
        latest().hear(item)
        say({ is: 'following' })
        waitMs = AGAIN_MS.first
      }
      return say({ is: 'ended' })
    } catch (error) {
      if (signal.aborted) return
      if (!isPassing(error)) return say({ is: 'failed', error })
      say({ is: 'lost' })
    } finally {
      if (quiet) clearTimeout(quiet)
    }
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    if (signal.aborted) return
  }
}
