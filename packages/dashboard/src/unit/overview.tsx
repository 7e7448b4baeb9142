// The facts of a unit, its addresses, and a form to run one command in it.

import type { Contract } from '@berth/sdk'
import { Link } from '@tanstack/react-router'
import { useTeam } from '../shell/team-context.ts'
import { Copied } from '../ui/copy.tsx'
import { Time } from '../ui/format.tsx'
import { Card, KeyValue } from '../ui/page-parts.tsx'
import { stackOf } from '../units/select.ts'
import { Creating } from './creating.tsx'
import { UnitCommand } from './unit-command.tsx'
import { useUnit } from './unit-context.ts'
import styles from './unit.module.css'

type Unit = Contract.Unit

export function Overview() {
  const unit = useUnit()
  const team = useTeam()
  return (
    <div className={styles.page}>
      <div className={styles.column}>
        {(unit.progress === null || unit.endpoints.length > 0) && <Endpoints unit={unit} />}
        {unit.progress ? <Creating progress={unit.progress} /> : <UnitCommand unit={unit} />}
      </div>
      <Card title="About it">
        <Facts unit={unit} slug={team.slug} />
      </Card>
    </div>
  )
}

function Endpoints({ unit }: { unit: Unit }) {
  return (
    <Card title="Endpoints">
      {unit.endpoints.length === 0 ? (
        <p className={styles.quiet}>No port of it is published.</p>
      ) : (
        unit.endpoints.map(({ id, protocol, mode, url }) => (
          <p key={id} className={styles.endpoint}>
            <span>
              {protocol}, {mode}
            </span>
            <Copied text={url} label={`Copy the address of ${protocol}`} />
            {/^https?:\/\//.test(url) && (
              <a href={url} target="_blank" rel="noopener noreferrer">
                Open
              </a>
            )}
          </p>
        ))
      )}
    </Card>
  )
}

function Facts({ unit, slug }: { unit: Unit; slug: string }) {
  const names = Object.entries(unit.env).map(([name, value]) => {
    if (typeof value === 'string') return name
    return 'teamSecret' in value ? `${name} (the team's ${value.teamSecret})` : `${name} (secret)`
  })
  const labels = Object.entries(unit.metadata).map(([name, value]) => `${name}: ${value}`)
  return (
    <KeyValue
      rows={[
        ['Image', <Copied key="image" text={unit.image} label="Copy the image" />],
        ['Id', <Copied key="id" text={unit.id} label="Copy the id" />],
        ['Host', <Copied key="host" text={unit.internalHost} label="Copy the host name" />],
        ['Stack', stackOf(unit)],
        ['Ports', unit.ports.join(', ') || 'none'],
        ['Sleeps after', unit.sleep],
        [
          unit.atEnd === 'sleep' ? 'Sleeps at' : 'Is destroyed at',
          unit.endsAt === null ? 'no time' : <Time key="ends" at={unit.endsAt} />,
        ],
        ['Labels', labels.join(', ') || 'none'],
        ['Environment', names.join(', ') || 'none'],
        ['Made', <Time key="made" at={unit.createdAt} />],
        ['Last used', unit.lastUsedAt === null ? 'never' : <Time key="used" at={unit.lastUsedAt} />],
        [
          'Copy of',
          unit.forkedFrom === null ? (
            'none'
          ) : (
            <Link key="from" to="/t/$team/units/$id" params={{ team: slug, id: unit.forkedFrom }}>
              {unit.forkedFrom}
            </Link>
          ),
        ],
        ['Last exit', unit.lastExit === null ? 'none' : String(unit.lastExit.code)],
      ]}
    />
  )
}
