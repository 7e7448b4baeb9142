// The log of a unit as it grows: keeps the newest lines in a ring, and renders them a few times a second, however many arrive.

import type { Contract, LogLine } from '@berth/sdk'
import { useEffect, useRef, useState } from 'react'
import { berthOf } from '../api/client.ts'
import { useVisible } from './use-visible.ts'

export type LogStatus =
  | { is: 'reading' }
  | { is: 'following' }
  /** The unit's run is over, or it has none. */
  | { is: 'ended' }
  | { is: 'failed'; error: unknown }

export type NumberedLine = LogLine & {
  /** Goes on counting when old lines are dropped. */
  number: number
}

export const RING_LINES = 10_000
const FIRST_LINES = 500
const SHOW_EVERY_MS = 100
/** With more that is not on the page yet, reading waits. */
const WAITING_LINES = 2000

/**
 * Follows the log while the page is visible, and begins again with each run. What comes while it is paused is kept, and shown
 * when it goes on.
 */
export function useLog({ team, unit, isPaused }: { team: string; unit: Contract.Unit; isPaused: boolean }) {
  const { id, startedAt } = unit
  const [lines, setLines] = useState<readonly NumberedLine[]>([])
  const [status, setStatus] = useState<LogStatus>({ is: 'reading' })
  const [attempt, setAttempt] = useState(0)
  const [held, setHeld] = useState(0)
  const isVisible = useVisible()
  const latest = useRef(unit)
  latest.current = unit
  const paused = useRef(isPaused)
  paused.current = isPaused

  // biome-ignore lint/correctness/useExhaustiveDependencies: another run or attempt begins again.
  useEffect(() => {
    if (!isVisible) return
    const over = new AbortController()
    const waiting: NumberedLine[] = []
    let shown: readonly NumberedLine[] = []
    let isFirst = true
    let count = 0
    const show = () => {
      if (paused.current) {
        setHeld(waiting.length)
        return
      }
      if (waiting.length === 0 && !isFirst) return
      isFirst = false
      shown = [...shown, ...waiting.splice(0)].slice(-RING_LINES)
      setHeld(0)
      setLines(shown)
    }
    const timer = setInterval(show, SHOW_EVERY_MS)
    const read = async () => {
      setStatus({ is: 'reading' })
      try {
        setStatus({ is: 'following' })
        const handle = berthOf(team).units.of(latest.current)
        for await (const line of handle.logs({ follow: true, limit: FIRST_LINES, signal: over.signal })) {
          waiting.push({ ...line, number: count++ })
          if (paused.current) waiting.splice(0, waiting.length - RING_LINES)
          else if (waiting.length > WAITING_LINES)
            await new Promise((resolve) => setTimeout(resolve, SHOW_EVERY_MS))
        }
        setStatus({ is: 'ended' })
      } catch (error) {
        if (!over.signal.aborted) setStatus({ is: 'failed', error })
      }
    }
    void read()
    return () => {
      over.abort()
      clearInterval(timer)
    }
  }, [team, id, startedAt, attempt, isVisible])

  return { lines, status, held, again: () => setAttempt(attempt + 1) }
}
