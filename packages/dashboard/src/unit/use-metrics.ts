// What a unit uses, sampled while the page is in sight. It goes on by itself when the connection was lost.

import type { Contract } from '@berth/sdk'
import { useEffect, useRef, useState } from 'react'
import { berthOf } from '../api/client.ts'
import { isPassing } from '../api/passing-error.ts'
import { useVisible } from './use-visible.ts'

export type Metrics = Contract.UnitMetrics

export type MetricsStatus =
  | { is: 'reading' }
  | { is: 'following' }
  /** The unit is destroyed. */
  | { is: 'ended' }
  /** It is tried again. */
  | { is: 'lost' }
  | { is: 'failed'; error: unknown }

/** Of five minutes. */
const KEPT_SAMPLES = 150
const AGAIN_MS = { first: 1000, longest: 15_000 }

export function useMetrics({ team, unit }: { team: string; unit: Contract.Unit }) {
  const { id } = unit
  const [samples, setSamples] = useState<readonly Metrics[]>([])
  const [status, setStatus] = useState<MetricsStatus>({ is: 'reading' })
  const [attempt, setAttempt] = useState(0)
  const isVisible = useVisible()
  const latest = useRef(unit)
  latest.current = unit

  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt begins again.
  useEffect(() => {
    if (!isVisible) return
    const over = new AbortController()
    const follow = async () => {
      for (let waitMs = AGAIN_MS.first; ; waitMs = Math.min(waitMs * 2, AGAIN_MS.longest)) {
        try {
          const handle = berthOf(team).units.of(latest.current)
          for await (const sample of handle.followMetrics({ signal: over.signal })) {
            setSamples((before) => [...before, sample].slice(-KEPT_SAMPLES))
            setStatus({ is: 'following' })
            waitMs = AGAIN_MS.first
          }
          return setStatus({ is: 'ended' })
        } catch (error) {
          if (over.signal.aborted) return
          if (!isPassing(error)) return setStatus({ is: 'failed', error })
          setStatus({ is: 'lost' })
        }
        await new Promise((resolve) => setTimeout(resolve, waitMs))
        if (over.signal.aborted) return
      }
    }
    void follow()
    return () => over.abort()
  }, [team, id, attempt, isVisible])

  return { samples, status, again: () => setAttempt(attempt + 1) }
}
