// Stacks: units that belong together, with what they cost and how many of them run.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { explain } from '../api/explain.ts'
import { pricingQuery, unitsQuery } from '../api/queries.ts'
import { stacksQuery } from '../api/team-queries.ts'
import { useTeam } from '../shell/team-context.ts'
import { countStates } from '../../../../src/contract/states.ts'
import { centsAnHour } from '../../../../src/lib/money.ts'
import { buttonClass } from '../ui/button.tsx'
import { rate, Time } from '../ui/format.tsx'
import { Empty, Failure, PageHead, Skeleton } from '../ui/page-parts.tsx'
import { StateShape } from '../ui/state.tsx'
import styles from './stacks.module.css'

export function StacksPage() {
  const team = useTeam()
  const { data: stacks, error, refetch } = useQuery(stacksQuery(team.id))
  const { data: rows } = useQuery(unitsQuery(team.id))
  const unitsOf = Map.groupBy(rows?.units ?? [], ({ stackId }) => stackId)
  return (
    <>
      <PageHead title="Stacks" note={stacks && `${stacks.length}`} />
      {error !== null ? (
        <Failure {...explain(error)} onRetry={() => void refetch()} />
      ) : stacks === undefined ? (
        <Skeleton rows={4} />
      ) : stacks.length === 0 ? (
        <Empty title="No stack yet">
          <p>Units of a stack find each other by name, and sleep, wake and fork together.</p>
          <Link
            to="/t/$team/recipes/$name"
            params={{ team: team.slug, name: 'web-with-postgres' }}
            className={buttonClass('main')}
          >
            Start a web server with a database
          </Link>
        </Empty>
      ) : (
        <ul className={styles.cards}>
          {stacks.map((stack) => (
            <StackCard key={stack.id} stack={stack} units={unitsOf.get(stack.id) ?? []} />
          ))}
        </ul>
      )}
    </>
  )
}

function StackCard({ stack, units }: { stack: Contract.Stack; units: Contract.Unit[] }) {
  const team = useTeam()
  const { data: pricing } = useQuery(pricingQuery)
  return (
    <li className={styles.card}>
      <h2>
        <Link to="/t/$team/stacks/$name" params={{ team: team.slug, name: stack.name }}>
          <bdi>{stack.name}</bdi>
        </Link>
      </h2>
      <p className={styles.states}>
        {countStates(units).map(([state, count]) => (
          <span key={state} className={styles.count}>
            <StateShape state={state} />
            {count} {state}
          </span>
        ))}
        {units.length === 0 && 'no units'}
      </p>
      <p className={styles.note}>
        {rate(centsAnHour(units, pricing))} · created <Time at={stack.createdAt} />
      </p>
    </li>
  )
}
