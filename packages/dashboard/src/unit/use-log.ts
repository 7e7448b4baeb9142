// The log of a unit as it grows: keeps the newest lines in a ring, and renders them a few times a second, however many arrive.

import type { Contract, LogLine } from '@berth/sdk'
import { useEffect, useRef, useState } from 'react'
import { type Heard, openLog } from './open-log.ts'
import { useStream } from './use-stream.ts'

export type NumberedLine = LogLine & {
  /** Goes on counting when old lines are dropped. */
  number: number
}

export const RING_LINES = 10_000
const FIRST_LINES = 500
const SHOW_EVERY_MS = 100
/** With more that is not on the page yet, reading waits. */
const WAITING_LINES = 2000

/** What was heard of one unit. */
type HeardLog = {
  waiting: NumberedLine[]
  count: number
  /** Goes on behind the last line. */
  cursor: string | undefined
}

/**
 * Follows the log while the page is visible. With the next run, and after a lost connection, it goes on behind its last line.
 * What comes while it is paused is kept, and shown when it goes on.
 */
export function useLog({ team, unit, isPaused }: { team: string; unit: Contract.Unit; isPaused: boolean }) {
  const { id, startedAt } = unit
  const [lines, setLines] = useState<readonly NumberedLine[]>([])
  const [held, setHeld] = useState(0)
  const heard = useRef<HeardLog>(nothingHeard())
  const paused = useRef(isPaused)
  paused.current = isPaused

  // biome-ignore lint/correctness/useExhaustiveDependencies: another unit has other lines.
  useEffect(() => {
    const show = () => {
      const { waiting } = heard.current
      setHeld(paused.current ? waiting.length : 0)
      if (paused.current || waiting.length === 0) return
      const fresh = waiting.splice(0)
      setLines((before) => [...before, ...fresh].slice(-RING_LINES))
    }
    const timer = setInterval(show, SHOW_EVERY_MS)
    return () => {
      clearInterval(timer)
      heard.current = nothingHeard()
      setLines([])
    }
  }, [team, id])

  const stream = useStream<Heard<LogLine>>(`${team} ${id} ${startedAt}`, {
    open: (signal) =>
      openLog(
        team,
        `/v1/units/${encodeURIComponent(id)}/logs`,
        { since: heard.current.cursor, limit: FIRST_LINES },
        signal,
      ),
    hear: async ({ line, cursor }) => {
      const { current: log } = heard
      log.waiting.push({ ...line, number: log.count++ })
      log.cursor = cursor ?? log.cursor
      if (paused.current) log.waiting.splice(0, log.waiting.length - RING_LINES)
      else if (log.waiting.length > WAITING_LINES) await aMoment()
    },
  })
  const beginAnew = () => {
    heard.current = nothingHeard()
    setLines([])
    stream.again()
  }
  return { lines, held, status: stream.status, again: beginAnew }
}

const nothingHeard = (): HeardLog => ({ waiting: [], count: 0, cursor: undefined })

const aMoment = async () => await new Promise((resolve) => setTimeout(resolve, SHOW_EVERY_MS))
