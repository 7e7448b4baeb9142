// What a person wants to know of a unit first: what it uses, its log, a command, its facts and what happened to it.

import type { Contract } from '@berth/sdk'
import { Link } from '@tanstack/react-router'
import { useTeam } from '../shell/team-context.ts'
import { Copied } from '../ui/copy.tsx'
import { Money, Time } from '../ui/format.tsx'
import { Card, KeyValue } from '../ui/page-parts.tsx'
import { stackOf } from '../units/select.ts'
import { Creating } from './creating.tsx'
import { LastLines } from './last-lines.tsx'
import { Life } from './life.tsx'
import { UnitCommand } from './unit-command.tsx'
import { useUnit } from './unit-context.ts'
import { Usage } from './usage.tsx'
import styles from './unit.module.css'

type Unit = Contract.Unit

const atEndWords = { destroy: 'Destroyed', sleep: 'Sleeps', stop: 'Stops' } as const

export function Overview() {
  const unit = useUnit()
  const team = useTeam()
  return (
    <div className={styles.page}>
      <div className={styles.column}>
        {unit.progress ? (
          <Creating progress={unit.progress} />
        ) : (
          <>
            <Usage unit={unit} />
            <UnitCommand unit={unit} />
            <LastLines unit={unit} />
          </>
        )}
      </div>
      <div className={styles.column}>
        <Card title="Details">
          <KeyValue rows={factsOf(unit, team.slug)} />
        </Card>
        <Life unit={unit} />
      </div>
    </div>
  )
}

/** What is not set is left out. */
function factsOf(unit: Unit, slug: string): [string, React.ReactNode][] {
  const names = Object.entries(unit.env).map(([name, value]) => {
    if (typeof value === 'string') return name
    return 'teamSecret' in value ? `${name} (the team's ${value.teamSecret})` : `${name} (secret)`
  })
  const labels = Object.entries(unit.metadata).map(([name, value]) => `${name}: ${value}`)
  const link = (to: '/t/$team/units/$id' | '/t/$team/units/$id/forks', id: string, text: string) => (
    <Link to={to} params={{ team: slug, id }}>
      {text}
    </Link>
  )
  const rows: [string, React.ReactNode][] = [
    ['Image', <Copied key="image" text={unit.image} label="Copy the image" />],
    ['Size', unit.size],
    ['Cost so far', <Money key="cost" cents={unit.costCentsSoFar} />],
    ['Stack', stackOf(unit)],
    ['Host name', <Copied key="host" text={unit.internalHost} label="Copy the host name" />],
    ['Ports', unit.ports.join(', ')],
    ['Sleeps after', unit.sleep],
    [atEndWords[unit.atEnd], unit.endsAt !== null && <Time key="ends" at={unit.endsAt} />],
    ['Labels', labels.join(', ')],
    ['Environment', names.join(', ')],
    [
      'Created',
      <span key="made">
        <Time at={unit.createdAt} />
        {unit.createdBy?.name && (
          <>
            {' '}
            by <bdi>{unit.createdBy.name}</bdi>
          </>
        )}
      </span>,
    ],
    ['Last used', unit.lastUsedAt !== null && <Time key="used" at={unit.lastUsedAt} />],
    ['Fork of', unit.forkedFrom !== null && link('/t/$team/units/$id', unit.forkedFrom, unit.forkedFrom)],
    ['Forks', link('/t/$team/units/$id/forks', unit.id, 'Show the tree')],
    ['ID', <Copied key="id" text={unit.id} label="Copy the ID" />],
  ]
  return rows.filter(([, value]) => value !== '' && value !== false)
}
