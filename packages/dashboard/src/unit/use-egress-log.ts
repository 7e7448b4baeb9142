// What the unit reached and was refused, as it comes. Lines of this minute grow: the newest answer of each counts.

import type { Contract } from '@berth/sdk'
import { useEffect, useRef, useState } from 'react'
import { berthOf } from '../api/client.ts'
import { isPassing } from '../api/passing-error.ts'
import { useVisible } from './use-visible.ts'

export type Line = Contract.EgressLogLine & { key: string }

export type EgressLogStatus =
  | { is: 'reading' }
  | { is: 'following' }
  /** The unit is destroyed. */
  | { is: 'ended' }
  | { is: 'failed'; error: unknown }

const KEPT_LINES = 500
const FIRST_LINES = 200
const SHOW_EVERY_MS = 250
/** The first lines come at once, and none at all says nothing. */
const READ_AFTER_MS = 1000
const AGAIN_MS = 3000

/** Lines are the newest first. */
export function useEgressLog({ team, unit }: { team: string; unit: Contract.Unit }) {
  const { id } = unit
  const [lines, setLines] = useState<readonly Line[]>([])
  const [status, setStatus] = useState<EgressLogStatus>({ is: 'reading' })
  const [attempt, setAttempt] = useState(0)
  const isVisible = useVisible()
  const latest = useRef(unit)
  latest.current = unit

  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt begins again.
  useEffect(() => {
    if (!isVisible) return
    const over = new AbortController()
    const kept = new Map<string, Line>()
    let isChanged = false
    const show = () => {
      if (isChanged) setLines([...kept.values()].toReversed())
      isChanged = false
    }
    const timer = setInterval(show, SHOW_EVERY_MS)
    const follow = async () => {
      const handle = berthOf(team).units.of(latest.current)
      const options = { follow: true, limit: FIRST_LINES, signal: over.signal }
      for await (const line of handle.egressLog(options)) {
        const key = keyOf(line)
        kept.delete(key)
        kept.set(key, { ...line, key })
        if (kept.size > KEPT_LINES) kept.delete(kept.keys().next().value ?? '')
        isChanged = true
      }
    }
    const read = async () => {
      const quiet = setTimeout(() => setStatus({ is: 'following' }), READ_AFTER_MS)
      try {
        await follow()
        setStatus({ is: 'ended' })
      } catch (error) {
        if (over.signal.aborted) return
        if (isPassing(error)) setTimeout(() => !over.signal.aborted && void read(), AGAIN_MS)
        else setStatus({ is: 'failed', error })
      } finally {
        clearTimeout(quiet)
        show()
      }
    }
    void read()
    return () => {
      over.abort()
      clearInterval(timer)
    }
  }, [team, id, attempt, isVisible])

  return { lines, status, again: () => setAttempt(attempt + 1) }
}

function keyOf({ at, host, port, protocol, decision, rule, secret, reason }: Contract.EgressLogLine): string {
  return JSON.stringify([at, host, port, protocol, decision, rule, secret, reason])
}
