// One stack: its units and what connects them, asleep or forked as one.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useMemo } from 'react'
import { explain } from '../api/explain.ts'
import { pricingQuery, unitsQuery } from '../api/queries.ts'
import { stacksQuery } from '../api/team-queries.ts'
import { NotHere } from '../shell/not-here.tsx'
import { useTeam } from '../shell/team-context.ts'
import { centsAnHour } from '../../../../src/lib/money.ts'
import { ToldOnceCard } from '../units/told-once-card.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Money, rate } from '../ui/format.tsx'
import { Card, Failure, PageHead, Skeleton } from '../ui/page-parts.tsx'
import { State } from '../ui/state.tsx'
import { type Arrow, arrowsOf } from './graph.ts'
import { StackActions } from './stack-actions.tsx'
import { StackGraph } from './stack-graph.tsx'
import styles from './stacks.module.css'

const none: Contract.Unit[] = []

export function StackPage() {
  const team = useTeam()
  const { name } = useParams({ strict: false })
  const go = useNavigate()
  const { data: stacks, error, refetch, isFetching } = useQuery(stacksQuery(team.id))
  const { data: rows } = useQuery(unitsQuery(team.id))
  const { data: pricing } = useQuery(pricingQuery)
  const stack = stacks?.find((each) => each.name === name)
  const all = rows?.units ?? none
  const units = useMemo(() => all.filter(({ stackId }) => stackId === stack?.id), [all, stack])
  const arrows = useMemo(() => arrowsOf(units), [units])
  // One that was made a moment ago is in the list that is being read.
  const isRead = stacks !== undefined && rows !== undefined && (stack !== undefined || !isFetching)
  if (error !== null || !isRead)
    return (
      <>
        <PageHead title={<bdi>{name}</bdi>} />
        {error === null ? <Skeleton /> : <Failure {...explain(error)} onRetry={() => void refetch()} />}
      </>
    )
  if (stack === undefined) return <NotHere />
  const open = (id: string) => void go({ to: '/t/$team/units/$id', params: { team: team.slug, id } })
  return (
    <>
      <PageHead
        title={<bdi>{stack.name}</bdi>}
        note={`${units.length} ${units.length === 1 ? 'unit' : 'units'} · ${rate(centsAnHour(units, pricing))}`}
      >
        <StackActions stack={stack} units={units} />
      </PageHead>
      <ToldOnceCard of={stack.id} />
      <div className={styles.page}>
        <StackGraph units={units} arrows={arrows} onOpen={open} />
        <Card title="Units">
          <DataTable
            label="Units of the stack"
            rows={units}
            keyOf={({ id }) => id}
            columns={[
              {
                head: 'Unit',
                cell: (unit) => (
                  <Link to="/t/$team/units/$id" params={{ team: team.slug, id: unit.id }}>
                    <bdi>{unit.name}</bdi>
                  </Link>
                ),
              },
              { head: 'State', cell: ({ state }) => <State state={state} /> },
              { head: 'Connects to', cell: (unit) => knownBy(unit, arrows, units) },
              { head: 'Sleeps after', cell: ({ sleep }) => sleep, isExtra: true },
              {
                head: 'Cost so far',
                cell: ({ costCentsSoFar }) => <Money cents={costCentsSoFar} />,
                kind: 'number',
              },
            ]}
          />
        </Card>
      </div>
    </>
  )
}

function knownBy(unit: Contract.Unit, arrows: readonly Arrow[], units: readonly Contract.Unit[]): string {
  const nameOf = (id: string) => units.find((each) => each.id === id)?.name ?? ''
  const known = arrows
    .filter(({ from }) => from === unit.id)
    .map(({ to, label, kind }) =>
      kind === 'address' ? `${nameOf(to)} (${label})` : `shares ${label} with ${nameOf(to)}`,
    )
  const shared = arrows
    .filter(({ to, kind }) => to === unit.id && kind === 'secret')
    .map(({ from, label }) => `shares ${label} with ${nameOf(from)}`)
  return [...known, ...shared].join('; ') || '–'
}
