// Where the unit was copied from and what was copied of it, as a tree. Units that are destroyed have left it.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { explain } from '../api/explain.ts'
import { unitsQuery } from '../api/queries.ts'
import { useTeam } from '../shell/team-context.ts'
import { Time } from '../ui/format.tsx'
import { Failure, Skeleton } from '../ui/page-parts.tsx'
import { State } from '../ui/state.tsx'
import { childrenOf, rootOf } from './fork-tree.ts'
import { useUnit } from './unit-context.ts'
import styles from './unit.module.css'

type Unit = Contract.Unit

export function ForksTab() {
  const unit = useUnit()
  const team = useTeam()
  const { data, error, refetch } = useQuery(unitsQuery(team.id))
  if (error !== null) return <Failure {...explain(error)} onRetry={() => void refetch()} />
  if (data === undefined || !data.isComplete) return <Skeleton />
  const byParent = childrenOf(data.units)
  const root = rootOf(unit, data.units)
  return (
    <div className={styles.wide}>
      {root.forkedFrom !== null && (
        <p className={styles.quiet}>
          {root.name} was copied from <code>{root.forkedFrom}</code>, which is destroyed.
        </p>
      )}
      <ul className={styles.tree} aria-label="Forks">
        <Branch unit={root} here={unit.id} byParent={byParent} />
      </ul>
      {root.id === unit.id && !byParent.has(unit.id) && (
        <p className={styles.quiet}>No forks yet. A fork begins with what the unit has now.</p>
      )}
    </div>
  )
}

function Branch({
  unit,
  here,
  byParent,
}: {
  unit: Unit
  here: string
  byParent: ReadonlyMap<string, Unit[]>
}) {
  const { slug } = useTeam()
  const copies = byParent.get(unit.id) ?? []
  return (
    <li className={styles.branch}>
      <p className={styles.leaf}>
        <State state={unit.state} quiet />
        {unit.id === here ? (
          <b aria-current="true">
            <bdi>{unit.name}</bdi>
          </b>
        ) : (
          <Link to="/t/$team/units/$id/forks" params={{ team: slug, id: unit.id }}>
            <bdi>{unit.name}</bdi>
          </Link>
        )}
        <span className={styles.quiet}>
          {unit.copied !== null && `${copiedWords[unit.copied]}, `}
          <Time at={unit.createdAt} />
          {unit.createdBy?.name && (
            <>
              {' '}
              by <bdi>{unit.createdBy.name}</bdi>
            </>
          )}
        </span>
      </p>
      {copies.length > 0 && (
        <ul>
          {copies.map((copy) => (
            <Branch key={copy.id} unit={copy} here={here} byParent={byParent} />
          ))}
        </ul>
      )}
    </li>
  )
}

const copiedWords = {
  memory: 'with its memory',
  disk: 'with its disk',
  config: 'its settings alone',
} as const satisfies Record<NonNullable<Unit['copied']>, string>
