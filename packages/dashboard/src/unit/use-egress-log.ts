// What the unit reached and was refused, as it comes. Lines of this minute grow: the newest answer of each counts.

import type { Contract } from '@berth/sdk'
import { useEffect, useRef, useState } from 'react'
import { type Heard, openLog } from './open-log.ts'
import { useStream } from './use-stream.ts'

export type Line = Contract.EgressLogLine & { key: string }

const KEPT_LINES = 500
const FIRST_LINES = 200
const SHOW_EVERY_MS = 250

/** Lines are the newest first. */
export function useEgressLog({ team, unit }: { team: string; unit: Contract.Unit }) {
  const [lines, setLines] = useState<readonly Line[]>([])
  const kept = useRef(new Map<string, Line>())
  const isChanged = useRef(false)
  const cursor = useRef<string | undefined>(undefined)
  const key = `${team} ${unit.id}`

  // biome-ignore lint/correctness/useExhaustiveDependencies: another unit has other lines.
  useEffect(() => {
    const timer = setInterval(() => {
      if (isChanged.current) setLines([...kept.current.values()].toReversed())
      isChanged.current = false
    }, SHOW_EVERY_MS)
    return () => {
      clearInterval(timer)
      kept.current.clear()
      cursor.current = undefined
      setLines([])
    }
  }, [key])

  const stream = useStream<Heard<Contract.EgressLogLine>>(key, {
    open: (signal) =>
      openLog(
        team,
        `/v1/units/${encodeURIComponent(unit.id)}/egress/log`,
        { since: cursor.current, limit: FIRST_LINES },
        signal,
      ),
    hear: ({ line, cursor: after }) => {
      keep(kept.current, line)
      isChanged.current = true
      cursor.current = after ?? cursor.current
    },
  })
  return { lines, ...stream }
}

function keep(kept: Map<string, Line>, line: Contract.EgressLogLine): void {
  const { at, host, port, protocol, decision, rule, secret, reason } = line
  const key = JSON.stringify([at, host, port, protocol, decision, rule, secret, reason])
  kept.delete(key)
  kept.set(key, { ...line, key })
  if (kept.size > KEPT_LINES) kept.delete(kept.keys().next().value ?? '')
}
