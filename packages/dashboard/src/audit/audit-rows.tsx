// Calls of the team's agents and people as sentences, newest first. The details of one are shown beside the list, on narrow
// screens below its row.

import type { Contract } from '@berth/sdk'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useMemo, useState, useSyncExternalStore } from 'react'
import { explain } from '../api/explain.ts'
import { unitsQuery } from '../api/queries.ts'
import { type AuditAsked, auditPage } from '../api/team-queries.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Failure, Skeleton } from '../ui/page-parts.tsx'
import { AuditRow, CallDetails } from './audit-row.tsx'
import { useNews } from './use-news.ts'
import styles from './audit.module.css'

export function useAudit(asked: AuditAsked) {
  const team = useTeam()
  return useInfiniteQuery({
    queryKey: [team.id, 'audit', asked],
    queryFn: async ({ pageParam, signal }) => await auditPage(team.id, asked, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next }: Contract.AuditList) => next,
    staleTime: 0,
  })
}

const wide = matchMedia('(min-width: 1100px)')
const watchWidth = (watcher: () => void) => {
  wide.addEventListener('change', watcher)
  return () => wide.removeEventListener('change', watcher)
}

const isFiltered = ({ action, since, until, failed }: AuditAsked) =>
  Boolean(action ?? since ?? until ?? failed)

/** `here`: the unit whose page this is. */
export function AuditRows({ asked, here }: { asked: AuditAsked; here?: string }) {
  const team = useTeam()
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useAudit(asked)
  const { data: known } = useQuery(unitsQuery(team.id))
  const names = useMemo(() => new Map(known?.units.map(({ id, name }) => [id, name])), [known])
  const [shown, show] = useState<string | null>(null)
  const isBeside = useSyncExternalStore(watchWidth, () => wide.matches)
  const events = data?.pages.flatMap((page) => page.events) ?? []
  useNews(() => void refetch())
  if (error !== null && data === undefined)
    return <Failure {...explain(error)} onRetry={() => void refetch()} />
  if (data === undefined) return <Skeleton />
  if (events.length === 0)
    return <p className={styles.none}>{isFiltered(asked) ? 'No calls match.' : 'No activity yet.'}</p>
  const open = events.find(({ id }) => id === shown)
  return (
    <div className={open && isBeside ? styles.halves : ''}>
      <div>
        {error !== null && <Failure {...explain(error)} onRetry={() => void refetch()} />}
        <ol className={styles.rows} aria-label="Calls">
          {events.map((event) => (
            <AuditRow
              key={event.id}
              event={event}
              nameOf={(id) => names.get(id)}
              here={here}
              isOpen={event.id === shown}
              isBeside={isBeside}
              onOpen={() => show(event.id === shown ? null : event.id)}
            />
          ))}
        </ol>
        {hasNextPage && (
          <p className={styles.older}>
            <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              Show older
            </Button>
          </p>
        )}
      </div>
      {open && isBeside && (
        <aside id={`call-${open.id}`} className={styles.side} aria-label="Details of the call">
          <CallDetails event={open} />
        </aside>
      )}
    </div>
  )
}
