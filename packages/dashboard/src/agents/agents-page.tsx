// What acts for the team besides its members: keys, and the programs that people connected, each with what it may do.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { explain } from '../api/explain.ts'
import { agentsQuery, hostedListQuery } from '../api/team-queries.ts'
import { useTeam } from '../shell/team-context.ts'
import { buttonClass } from '../ui/button.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { euros } from '../../../../src/lib/money.ts'
import { Money, Time } from '../ui/format.tsx'
import { Meter } from '../ui/meter.tsx'
import { Empty, Failure, PageHead, Skeleton } from '../ui/page-parts.tsx'
import { usedBy } from './agent-use.ts'
import { HostedList } from './hosted-list.tsx'
import { Connect } from './connect.tsx'
import { type Policy, shortSentence } from './policy-text.ts'
import styles from './agents.module.css'

type Agent = Contract.Agent

export function AgentsPage() {
  const team = useTeam()
  const { data, error, refetch } = useQuery(agentsQuery(team.id))
  // Read before anything is shown, so that nothing below it moves.
  const { isPending } = useQuery(hostedListQuery(team.id))
  const agents = data?.agents.filter(({ revokedAt }) => revokedAt === null) ?? []
  const seats = data ? `${data.seats.used} of ${data.seats.max} seats` : ''
  return (
    <>
      <PageHead title="Agents" note={seats}>
        <Link to="/t/$team/agents/new" params={{ team: team.slug }} className={buttonClass('main')}>
          New key
        </Link>
      </PageHead>
      {error !== null ? (
        <Failure {...explain(error)} onRetry={() => void refetch()} />
      ) : data === undefined || isPending ? (
        <Skeleton />
      ) : (
        <div className={styles.page}>
          {agents.length === 0 ? (
            <Empty title="No agent yet">
              <p>An agent is a key you make, or a program that you connect. Each has limits of its own.</p>
            </Empty>
          ) : (
            <DataTable label="Agents" columns={columnsOf(team.slug)} rows={agents} keyOf={({ id }) => id} />
          )}
          <HostedList />
          <Connect />
        </div>
      )}
    </>
  )
}

const columnsOf = (slug: string): Column<Agent>[] => [
  {
    head: 'Name',
    cell: (agent) => (
      <Link to="/t/$team/agents/$id" params={{ team: slug, id: agent.id }} className={styles.name}>
        <bdi>{agent.name}</bdi>
      </Link>
    ),
  },
  { head: 'Kind', cell: kindOf, isExtra: true },
  {
    head: 'May',
    cell: ({ policy }) => <span className={styles.may}>{shortSentence(policy as Policy)}</span>,
    isExtra: true,
  },
  { head: 'Today', cell: (agent) => <Today agent={agent} /> },
  { head: 'Units', cell: unitsOf, kind: 'number', isExtra: true },
  {
    head: 'Last used',
    cell: ({ lastUsedAt }) => (lastUsedAt === null ? 'not yet' : <Time at={lastUsedAt} />),
    kind: 'number',
  },
]

function kindOf({ kind, prefix, agent }: Agent) {
  if (kind === 'oauth') return agent === null ? 'connected' : `connected, ${agent.title}`
  return (
    <>
      key <code>{prefix}…</code>
    </>
  )
}

function Today({ agent }: { agent: Agent }) {
  const cap = (agent.policy as Policy).dailySpendCapCents
  const spent = usedBy(agent).spentTodayCents
  if (spent === null) return `at most ${euros(cap)}`
  return (
    <span className={styles.today}>
      <Meter value={spent} max={cap} label={`${euros(spent)} of ${euros(cap)} spent today`} />
      <span>
        <Money cents={spent} /> of {euros(cap)}
      </span>
    </span>
  )
}

function unitsOf(agent: Agent) {
  const { liveUnits } = usedBy(agent)
  const max = (agent.policy as Policy).maxConcurrentUnits
  return liveUnits === null ? `at most ${max}` : `${liveUnits} of ${max}`
}
