// The newest lines that the unit's own process printed, read anew when asked. Reading wakes nothing.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { berthOf } from '../api/client.ts'
import { explain } from '../api/explain.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { timeOfDay } from '../ui/format.tsx'
import { Card } from '../ui/page-parts.tsx'
import styles from './unit-page.module.css'

export function UnitLog({ unit }: { unit: Contract.Unit }) {
  const team = useTeam()
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: [team.id, 'log', unit.id],
    queryFn: async ({ signal }) =>
      await berthOf(team.id).request<Contract.LogPage>(
        'GET',
        `/v1/units/${encodeURIComponent(unit.id)}/logs`,
        { query: { limit: 200 }, signal },
      ),
  })
  return (
    <Card
      title="Log"
      action={
        <Button busy={isFetching} onClick={() => void refetch()}>
          Read again
        </Button>
      }
    >
      {error !== null && <p className={styles.stderr}>{explain(error).text}</p>}
      {data?.lines.length === 0 && <p className={styles.quiet}>It has printed nothing.</p>}
      {data !== undefined && data.lines.length > 0 && (
        <pre className={styles.output} tabIndex={0} role="region" aria-label="Log of the unit">
          {data.lines.map(({ at, stream, text }, row) => (
            <div key={row} className={stream === 'stderr' ? styles.stderr : undefined}>
              {timeOfDay(at)} {text}
            </div>
          ))}
        </pre>
      )}
    </Card>
  )
}
