// On the agents page: the environments of vendors whose hosted agents work in units of the team.

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { explain } from '../api/explain.ts'
import { hostedListQuery } from '../api/team-queries.ts'
import { useTeam } from '../shell/team-context.ts'
import { buttonClass } from '../ui/button.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Card, Failure, Skeleton } from '../ui/page-parts.tsx'
import { HostedState } from './hosted-state.tsx'
import { type Hosted, vendorNames } from './hosted-text.ts'
import styles from './agents.module.css'

export function HostedList() {
  const team = useTeam()
  const { data, error, refetch } = useQuery(hostedListQuery(team.id))
  const add = (
    <Link to="/t/$team/agents/hosted/new" params={{ team: team.slug }} className={buttonClass()}>
      Add an environment
    </Link>
  )
  return (
    <Card title="Hosted agents" action={add}>
      {error !== null ? (
        <Failure {...explain(error)} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Skeleton rows={1} />
      ) : data.length === 0 ? (
        <p className={styles.lead}>
          A vendor runs the model, and its agents work in units here: your files stay with you. Paste the key
          of a self-hosted environment of Claude Managed Agents to begin.
        </p>
      ) : (
        <DataTable label="Hosted agents" columns={columnsOf(team.slug)} rows={data} keyOf={({ id }) => id} />
      )}
    </Card>
  )
}

const columnsOf = (slug: string): Column<Hosted>[] => [
  {
    head: 'Environment',
    cell: ({ id, environment }) => (
      <Link to="/t/$team/agents/hosted/$id" params={{ team: slug, id }} className={styles.name}>
        {environment}
      </Link>
    ),
  },
  { head: 'Vendor', cell: ({ vendor }) => vendorNames[vendor], isExtra: true },
  { head: 'State', cell: (hosted) => <HostedState hosted={hosted} /> },
  { head: 'At work', kind: 'number', cell: ({ working, atOnce }) => `${working} of ${atOnce}` },
]
