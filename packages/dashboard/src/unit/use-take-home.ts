// Runs one download at a time, with its progress and a way to stop it.

import { useEffect, useRef, useState } from 'react'
import { explain } from '../api/explain.ts'
import { byteSize } from '../../../../src/lib/byte-size.ts'
import { tellError } from '../ui/toast.tsx'
import { type Place, takeHome } from './file-calls.ts'

export type Taken = { path: string; isWhole: boolean }

export function useTakeHome(place: Place) {
  const [told, setTold] = useState<string | null>(null)
  const running = useRef<AbortController | null>(null)
  useEffect(() => () => running.current?.abort(), [])
  const run = async (what: Taken) => {
    if (running.current !== null) return
    const over = new AbortController()
    running.current = over
    setTold(`${what.path} is being read…`)
    let shownAt = 0
    try {
      await takeHome(place, what, {
        signal: over.signal,
        onBytes: (count) => {
          if (performance.now() - shownAt < 200) return
          shownAt = performance.now()
          setTold(`${what.path}: ${byteSize(count)} so far`)
        },
      })
    } catch (error) {
      if (!over.signal.aborted) tellError(explain(error))
    } finally {
      running.current = null
      setTold(null)
    }
  }
  return {
    told,
    take: (what: Taken) => void run(what),
    stop: () => running.current?.abort(),
  }
}
