// The log has no stream of its own. What streams to this page comes of calls, so when something has changed in the team
// the newest calls are read again, soon, and not more often than every few seconds.

import { useEffect, useRef } from 'react'
import { cache } from '../api/cache.ts'
import { useTeam } from '../shell/team-context.ts'

const WAIT_MS = 3000
const telling: readonly unknown[] = ['units', 'unit', 'agents', 'stacks']

export function useNews(onNews: () => void): void {
  const team = useTeam()
  const latest = useRef(onNews)
  latest.current = onNews
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = cache.getQueryCache().subscribe((event) => {
      if (event.type !== 'updated' || event.action.type !== 'success' || timer !== undefined) return
      const [ofTeam, noun] = event.query.queryKey
      // Only events of the stream count, not what this page has read itself.
      if (ofTeam !== team.id || !telling.includes(noun) || event.action.manual !== true) return
      timer = setTimeout(() => {
        timer = undefined
        latest.current()
      }, WAIT_MS)
    })
    return () => {
      stop()
      clearTimeout(timer)
    }
  }, [team.id])
}
