// What the unit reached and was refused, as it comes. Lines of this minute grow: the newest answer of each counts.

import type { Contract } from '@berth/sdk'
import { useEffect, useRef, useState } from 'react'
import { berthOf } from '../api/client.ts'
import { useStream } from './use-stream.ts'

export type Line = Contract.EgressLogLine & { key: string }

const KEPT_LINES = 500
const FIRST_LINES = 200
const SHOW_EVERY_MS = 250
/** The first lines come at once, and none at all says nothing. */
const QUIET_MS = 1000

/** Lines are the newest first. */
export function useEgressLog({ team, unit }: { team: string; unit: Contract.Unit }) {
  const [lines, setLines] = useState<readonly Line[]>([])
  const kept = useRef(new Map<string, Line>())
  const isChanged = useRef(false)
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
      setLines([])
    }
  }, [key])

  const stream = useStream<Contract.EgressLogLine>(key, {
    open: (signal) => berthOf(team).units.of(unit).egressLog({ follow: true, limit: FIRST_LINES, signal }),
    hear: (line) => {
      keep(kept.current, line)
      isChanged.current = true
    },
    quietMs: QUIET_MS,
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
