// What the team's units cost: by day, how much is left, and what the month will come to.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { explain } from '../api/explain.ts'
import { moneyQuery } from '../api/queries.ts'
import { agentsQuery, usagePartsQuery, usageQuery } from '../api/team-queries.ts'
import { usedBy } from '../agents/agent-use.ts'
import type { Policy } from '../agents/policy-text.ts'
import { useTeam } from '../shell/team-context.ts'
import { Button, buttonClass } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { download } from '../ui/download.ts'
import { Select } from '../ui/field.tsx'
import { euros } from '../../../../src/lib/money.ts'
import { Money } from '../ui/format.tsx'
import { Card, Empty, Failure, PageHead, Skeleton } from '../ui/page-parts.tsx'
import { Bars } from './bars.tsx'
import { Parts } from './parts.tsx'
import { ranges, readSpendSearch } from './search.ts'
import { csvOf, hoursOf, outlookOf, sinceFirst } from './spend-sums.ts'
import styles from './spend.module.css'

export function SpendPage() {
  const team = useTeam()
  const { days = 30 } = readSpendSearch(useSearch({ strict: false }))
  const usage = useQuery(usageQuery(team.id, days))
  // The parts above appear together with the rest, so that nothing moves while a person reads. They read nothing themselves:
  // a query that failed begins again with each part that is made of it.
  const month = useQuery(usageQuery(team.id, 31))
  const left = useQuery(moneyQuery(team.id))
  const agents = useQuery(agentsQuery(team.id))
  // Breakdown reads it, and stands above others. Once it has failed, that part says so, and asks again.
  const units = useQuery(usagePartsQuery(team.id, days, 'unit'))
  const read = [usage, month, left, agents]
  const failed = read.find(({ error }) => error !== null)
  const again = () => {
    for (const query of read) if (query.error !== null) void query.refetch()
  }
  const go = useNavigate()
  const setDays = (value: string) =>
    void go({
      to: '/t/$team/spend',
      params: { team: team.slug },
      search: { days: Number(value) },
      replace: true,
    })
  return (
    <>
      <PageHead
        title="Spend"
        note={
          usage.data && (
            <b>
              <Money cents={usage.data.totalCents} />
            </b>
          )
        }
      >
        <Select
          aria-label="Range"
          value={String(days)}
          options={ranges.map((range) => ({ value: String(range), label: `last ${range} days` }))}
          onChange={setDays}
        />
        <Button
          why={usage.data ? null : 'Nothing is read yet.'}
          onClick={() =>
            usage.data && download(`berth-spend-${days}-days.csv`, 'text/csv', csvOf(usage.data.days))
          }
        >
          CSV
        </Button>
      </PageHead>
      {!units.isFetched || read.some(({ isPending }) => isPending) ? (
        <Skeleton />
      ) : (
        <div className={styles.page}>
          {failed && <Failure {...explain(failed.error)} onRetry={again} />}
          {month.data && left.data && (
            <Outlook days={month.data.days} creditCents={left.data.creditBalanceCents} />
          )}
          <Near agents={agents.data?.agents ?? []} />
          {usage.data === undefined ? null : usage.data.totalCents === 0 ? (
            <Empty title="Nothing has cost anything yet">
              <p>A small unit costs half a cent an hour while it runs. Sleeping costs nothing.</p>
            </Empty>
          ) : (
            <>
              <Parts days={days} />
              <Card title="Each day">
                <Bars days={sinceFirst(usage.data.days)} />
              </Card>
              <Card title={`Last ${days} days`}>
                <Hours days={usage.data.days} />
              </Card>
            </>
          )}
        </div>
      )}
    </>
  )
}

function Hours({ days }: { days: Contract.Usage['days'] }) {
  return (
    <DataTable
      label="Hours by size"
      rows={hoursOf(days)}
      keyOf={({ size }) => size}
      columns={[
        { head: 'Size', cell: ({ size }) => size },
        { head: 'Hours that units ran', cell: ({ hours }) => hours.toFixed(2), kind: 'number' },
      ]}
    />
  )
}

function Outlook({ days, creditCents }: { days: Contract.Usage['days']; creditCents: number }) {
  const team = useTeam()
  const { monthCents, forecastCents, creditDays } = outlookOf(days, creditCents)
  return (
    <dl className={styles.outlook}>
      <Figure label="This month so far" value={<Money cents={monthCents} />} />
      <Figure
        label="Projected this month"
        value={forecastCents === null ? '–' : <Money cents={forecastCents} />}
      />
      <Figure label="Credits left" value={<Money cents={creditCents} />}>
        {creditDays === null || creditCents <= 0
          ? ''
          : creditDays < 1
            ? 'for less than a day'
            : creditDays > 365
              ? 'for more than a year'
              : `for about ${Math.floor(creditDays)} days`}
        <Link to="/t/$team/credits" params={{ team: team.slug }} className={buttonClass()}>
          Credits
        </Link>
      </Figure>
    </dl>
  )
}

function Figure({ label, value, children }: { label: string; value: ReactNode; children?: ReactNode }) {
  return (
    <div className={styles.figure}>
      <dt>{label}</dt>
      <dd className={styles.value}>{value}</dd>
      {children !== undefined && <dd className={styles.more}>{children}</dd>}
    </div>
  )
}

/** Agents that have used most of their cap of today. */
function Near({ agents }: { agents: readonly Contract.Agent[] }) {
  const team = useTeam()
  const near = agents.filter((agent) => agent.revokedAt === null && isNear(agent))
  if (near.length === 0) return null
  return (
    <ul className={styles.near} aria-label="Near their limit">
      {near.map((agent) => {
        const cap = (agent.policy as Policy).dailySpendCapCents
        const spent = usedBy(agent).spentTodayCents ?? 0
        return (
          <li key={agent.id}>
            <Link to="/t/$team/agents/$id" params={{ team: team.slug, id: agent.id }}>
              <bdi>{agent.name}</bdi>
            </Link>{' '}
            has spent <Money cents={spent} /> of {euros(cap)} today
            {spent >= cap ? ': its units go on after 00:00 UTC, or once its limit is raised.' : '.'}
          </li>
        )
      })}
    </ul>
  )
}

function isNear(agent: Contract.Agent): boolean {
  const { spentTodayCents } = usedBy(agent)
  if (spentTodayCents === null || spentTodayCents === 0) return false
  return spentTodayCents >= (agent.policy as Policy).dailySpendCapCents * 0.8
}
