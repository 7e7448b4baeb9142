// One environment of hosted agents: how it stands, and its sessions.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { explain } from '../api/explain.ts'
import { hostedQuery } from '../api/team-queries.ts'
import { useTeam } from '../shell/team-context.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Money, Time } from '../ui/format.tsx'
import { Card, Failure, PageHead, Skeleton } from '../ui/page-parts.tsx'
import { HostedActions } from './hosted-actions.tsx'
import { HostedState, SessionState } from './hosted-state.tsx'
import { type Hosted, plainSentence, vendorNames } from './hosted-text.ts'
import styles from './agents.module.css'

export function HostedPage() {
  const { id = '' } = useParams({ strict: false })
  const team = useTeam()
  const { data, error, refetch } = useQuery(hostedQuery(team.id, id))
  if (data === undefined)
    return (
      <>
        <PageHead title="Hosted agents" />
        {error === null ? <Skeleton /> : <Failure {...explain(error)} onRetry={() => void refetch()} />}
      </>
    )
  const { environment: hosted, sessions } = data
  return (
    <>
      <PageHead title={hosted.environment} note={<HostedState hosted={hosted} />}>
        <HostedActions hosted={hosted} />
      </PageHead>
      <div className={styles.page}>
        <Said hosted={hosted} />
        <Card title="Sessions">
          {sessions.length === 0 ? (
            <p className={styles.lead}>
              {hosted.on
                ? `None yet. Start one in this environment of ${vendorNames[hosted.vendor]}.`
                : 'None yet.'}
            </p>
          ) : (
            <DataTable
              label="Sessions"
              columns={columnsOf(team.slug, hosted.vendor)}
              rows={sessions}
              keyOf={({ id: session }) => session}
            />
          )}
        </Card>
      </div>
    </>
  )
}

/** The error has its space, so that nothing below it moves. */
function Said({ hosted }: { hosted: Hosted }) {
  const team = useTeam()
  const { note, notedAt, key, copyOf } = hosted
  return (
    <div className={styles.said}>
      <p>
        {plainSentence(hosted)}{' '}
        {copyOf !== null && (
          <>
            <Link to="/t/$team/units/$id" params={{ team: team.slug, id: copyOf }}>
              The prepared unit
            </Link>{' '}
          </>
        )}
        <Link to="/t/$team/agents/$id" params={{ team: team.slug, id: key.id }}>
          Limits of all sessions
        </Link>
      </p>
      {note !== null && (
        <p className={styles.wrong} role="status">
          {note} {notedAt !== null && <Time at={notedAt} />}
        </p>
      )}
    </div>
  )
}

const columnsOf = (slug: string, vendor: string): Column<Contract.HostedSession>[] => [
  {
    head: 'Session',
    cell: ({ id, note }) => (
      <>
        <code className={styles.session}>
          {vendor}/{id}
        </code>
        {note !== null && <span className={styles.why}>{note}</span>}
      </>
    ),
  },
  { head: 'State', cell: ({ state }) => <SessionState state={state} /> },
  { head: 'Unit', cell: ({ unit }) => <UnitLink slug={slug} unit={unit} />, isExtra: true },
  { head: 'Turns', kind: 'number', cell: ({ turns }) => turns, isExtra: true },
  { head: 'Cost', kind: 'number', cell: ({ costCents }) => <Money cents={costCents} short /> },
  { head: 'Changed', kind: 'number', cell: ({ changedAt }) => <Time at={changedAt} />, isExtra: true },
]

function UnitLink({ slug, unit }: { slug: string; unit: Contract.HostedSession['unit'] }) {
  if (unit === null) return 'none'
  if (unit.state === 'destroyed') return 'destroyed'
  return (
    <Link to="/t/$team/units/$id" params={{ team: slug, id: unit.id }}>
      {unit.name}
    </Link>
  )
}
