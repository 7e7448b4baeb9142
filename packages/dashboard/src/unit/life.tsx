// The last things that happened to the unit: changes by people and agents, checkpoints of its memory, how its last run ended,
// and what it cost.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { auditPage, historyQuery } from '../api/team-queries.ts'
import { ChangeList, type Moment } from '../audit/change-list.tsx'
import { useNews } from '../audit/use-news.ts'
import { useTeam } from '../shell/team-context.ts'
import { Card } from '../ui/page-parts.tsx'
import styles from './unit.module.css'

const CHANGES = 7

export function Life({ unit }: { unit: Contract.Unit }) {
  const team = useTeam()
  const asked = { target: unit.id, changes: true }
  const { data, refetch } = useQuery({
    queryKey: [team.id, 'audit', 'life', unit.id],
    queryFn: async ({ signal }) => await auditPage(team.id, asked, null, signal),
    staleTime: 0,
  })
  const history = useQuery(historyQuery(team.id, unit.id, 'day'))
  useNews(() => void refetch())
  return (
    <Card
      title="Activity"
      action={
        <Link to="/t/$team/units/$id/activity" params={{ team: team.slug, id: unit.id }}>
          All activity
        </Link>
      }
    >
      {unit.lastExit !== null && (
        <p className={styles.exit}>
          The last run exited with code {unit.lastExit.code}
          {unit.lastExit.oomKilled ? ': out of memory' : ''}.
        </p>
      )}
      <div className={styles.life}>
        {data && !history.isPending && (
          <ChangeList
            events={data.events}
            moments={history.data?.checkpoints.map(momentOf) ?? []}
            most={CHANGES}
            nameOf={() => undefined}
            here={unit.id}
          />
        )}
      </div>
    </Card>
  )
}

/** The unit slept so long that its memory was written to disk. */
const momentOf = ({ at, kept }: Contract.MetricsHistory['checkpoints'][number]): Moment => ({
  at,
  text: kept
    ? 'Berth saved its memory while it slept'
    : 'Berth could not save its memory: the next start boots from the disk',
})
