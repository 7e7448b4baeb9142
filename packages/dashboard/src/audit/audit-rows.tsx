// Calls of the team's agents and people, newest first. A row opens to the whole of what is kept of the call.

import type { Contract } from '@berth/sdk'
import { useInfiniteQuery } from '@tanstack/react-query'
import { explain } from '../api/explain.ts'
import { type AuditAsked, auditPage } from '../api/team-queries.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Failure, Skeleton } from '../ui/page-parts.tsx'
import { AuditRow } from './audit-row.tsx'
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

export function AuditRows({ asked }: { asked: AuditAsked }) {
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useAudit(asked)
  const events = data?.pages.flatMap((page) => page.events) ?? []
  useNews(() => void refetch())
  if (error !== null && data === undefined)
    return <Failure {...explain(error)} onRetry={() => void refetch()} />
  if (data === undefined) return <Skeleton />
  if (events.length === 0) return <p className={styles.none}>No call is like this.</p>
  return (
    <>
      {error !== null && <Failure {...explain(error)} onRetry={() => void refetch()} />}
      <ol className={styles.rows} aria-label="Calls">
        {events.map((event) => (
          <AuditRow key={event.id} event={event} />
        ))}
      </ol>
      {hasNextPage && (
        <p className={styles.older}>
          <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Older calls
          </Button>
        </p>
      )}
    </>
  )
}
