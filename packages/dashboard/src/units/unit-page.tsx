// One unit: what it is, what it costs, what it prints, and a command in it.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { explain } from '../api/explain.ts'
import { unitQuery } from '../api/queries.ts'
import { whyNot } from '../api/unit-can.ts'
import { useKeys } from '../shell/keys.ts'
import { LiveMark } from '../shell/live-bar.tsx'
import { NotHere } from '../shell/not-here.tsx'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Copied } from '../ui/copy.tsx'
import { money, Time, useNow } from '../ui/format.tsx'
import { Card, Failure, KeyValue, PageHead, Skeleton } from '../ui/page-parts.tsx'
import { State } from '../ui/state.tsx'
import { type QuickAction, useUnitAction } from './actions.ts'
import { DestroyUnits } from './destroy-units.tsx'
import { reasonOf } from './sentence.ts'
import { stackOf } from './select.ts'
import { UnitCommand } from './unit-command.tsx'
import { UnitLog } from './unit-log.tsx'
import styles from './unit-page.module.css'

type Unit = Contract.Unit

export function UnitPage() {
  const team = useTeam()
  const { id = '' } = useParams({ strict: false })
  const { data: unit, error, refetch } = useQuery(unitQuery(team.id, id))
  if (unit) return <Shown unit={unit} />
  if (error === null) return <Skeleton />
  const { title, text, requestId, isMissing } = { ...explain(error), isMissing: isNotFound(error) }
  if (isMissing) return <NotHere />
  return <Failure title={title} text={text} requestId={requestId} onRetry={() => void refetch()} />
}

function isNotFound(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'not_found'
}

function Shown({ unit }: { unit: Unit }) {
  const team = useTeam()
  const navigate = useNavigate()
  const now = useNow()
  const [doomed, setDoomed] = useState<Unit[]>([])
  const { mutate, isPending, variables } = useUnitAction(team.id)
  const run = (action: QuickAction) => {
    if (whyNot(unit, action) === null && !isPending) mutate({ unit, action })
  }
  useKeys('This unit', [
    { keys: 's', label: 'Stop', run: () => run('stop') },
    { keys: 'z', label: 'Sleep now', run: () => run('sleep') },
    { keys: 'f', label: 'Fork', run: () => run('fork') },
  ])
  const button = (action: QuickAction, label: string, hint?: string) => (
    <Button
      why={whyNot(unit, action)}
      busy={isPending && variables?.action === action}
      onClick={() => run(action)}
      {...(hint === undefined ? {} : { hint })}
    >
      {label}
    </Button>
  )
  return (
    <>
      <PageHead
        title={<bdi>{unit.name}</bdi>}
        note={
          <>
            <State state={unit.state} />
            <span>
              {unit.size} · {money(unit.costCentsSoFar)} so far
            </span>
            <LiveMark />
          </>
        }
      >
        {button('start', unit.state === 'sleeping' ? 'Wake' : 'Start')}
        {button('sleep', 'Sleep', 'z')}
        {button('stop', 'Stop', 's')}
        {button('fork', 'Fork', 'f')}
        <Button kind="danger" why={whyNot(unit, 'destroy')} onClick={() => setDoomed([unit])}>
          Destroy…
        </Button>
      </PageHead>
      <p className={styles.reason}>{reasonOf(unit, now)}</p>
      <div className={styles.page}>
        <div className={styles.column}>
          <Endpoints unit={unit} />
          <UnitCommand unit={unit} />
          <UnitLog unit={unit} />
        </div>
        <Card title="About it">
          <Facts unit={unit} slug={team.slug} />
        </Card>
      </div>
      <DestroyUnits
        units={doomed}
        onClose={() => setDoomed([])}
        onDone={() => void navigate({ to: '/t/$team/units', params: { team: team.slug } })}
      />
    </>
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
  const names = Object.entries(unit.env).map(([name, value]) =>
    typeof value === 'string' ? name : `${name} (secret)`,
  )
  return (
    <KeyValue
      rows={[
        ['Image', <Copied key="image" text={unit.image} label="Copy the image" />],
        ['Id', <Copied key="id" text={unit.id} label="Copy the id" />],
        ['Host', <Copied key="host" text={unit.internalHost} label="Copy the host name" />],
        ['Stack', stackOf(unit)],
        ['Ports', unit.ports.join(', ') || 'none'],
        ['Sleeps after', unit.sleep],
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
