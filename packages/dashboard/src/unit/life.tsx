// The last things that happened to the unit: changes by people and agents, how its last run ended, and what it cost.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { auditPage } from '../api/team-queries.ts'
import { ChangeList } from '../audit/change-list.tsx'
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
        {data && (
          <ChangeList events={data.events.slice(0, CHANGES)} nameOf={() => undefined} here={unit.id} />
        )}
      </div>
    </Card>
  )
}
