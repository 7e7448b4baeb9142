// One unit: its facts and actions, and below them one of its tabs, each with an address of its own.

import { type Contract, isBerthError } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { Outlet, useNavigate, useParams } from '@tanstack/react-router'
import { Suspense, useState } from 'react'
import { explain } from '../api/explain.ts'
import { unitQuery } from '../api/queries.ts'
import { whyNot } from '../api/unit-can.ts'
import { useKeys } from '../shell/keys.ts'
import { LiveMark } from '../shell/live-bar.tsx'
import { NotHere } from '../shell/not-here.tsx'
import { useTeam } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Money, useNow } from '../ui/format.tsx'
import { Failure, PageHead, Skeleton } from '../ui/page-parts.tsx'
import { State } from '../ui/state.tsx'
import { type QuickAction, useUnitAction } from '../units/actions.ts'
import { DestroyUnits } from '../units/destroy-units.tsx'
import { reasonOf } from '../units/sentence.ts'
import { StopUnits } from '../units/stop-units.tsx'
import { ToldOnceCard } from '../units/told-once-card.tsx'
import { Tabs } from './tabs.tsx'
import { UnitContext } from './unit-context.ts'
import styles from './unit.module.css'

type Unit = Contract.Unit

export function UnitPage() {
  const team = useTeam()
  const { id = '' } = useParams({ strict: false })
  const { data: unit, error, refetch } = useQuery(unitQuery(team.id, id))
  if (unit)
    return (
      <UnitContext value={unit}>
        <Shown key={unit.id} unit={unit} />
      </UnitContext>
    )
  if (isBerthError(error, 'not_found')) return <NotHere />
  return (
    <>
      <PageHead title="Unit" />
      {error === null ? <Skeleton /> : <Failure {...explain(error)} onRetry={() => void refetch()} />}
    </>
  )
}

function Shown({ unit }: { unit: Unit }) {
  const team = useTeam()
  const navigate = useNavigate()
  const now = useNow()
  const [doomed, setDoomed] = useState<Unit[]>([])
  const [toStop, setToStop] = useState<Unit[]>([])
  const { mutate, isPending, variables } = useUnitAction(team.id)
  const run = (action: QuickAction) => {
    if (whyNot(unit, action) === null && !isPending) mutate({ unit, action })
  }
  const stop = () => {
    if (whyNot(unit, 'stop') === null) setToStop([unit])
  }
  useKeys('This unit', [
    { keys: null, label: 'Stop…', run: stop },
    { keys: null, label: 'Sleep now', run: () => run('sleep') },
    { keys: null, label: 'Fork', run: () => run('fork') },
  ])
  const button = (action: QuickAction, label: string, onClick = () => run(action)) => (
    <Button why={whyNot(unit, action)} busy={isPending && variables?.action === action} onClick={onClick}>
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
              {unit.size} · <Money cents={unit.costCentsSoFar} /> so far
            </span>
            <LiveMark />
          </>
        }
      >
        {button('start', unit.state === 'sleeping' ? 'Wake' : 'Start')}
        {button('sleep', 'Sleep')}
        {button('stop', 'Stop…', stop)}
        {button('fork', 'Fork')}
        <Button kind="danger" why={whyNot(unit, 'destroy')} onClick={() => setDoomed([unit])}>
          Destroy…
        </Button>
      </PageHead>
      <p className={styles.reason}>{reasonOf(unit, now)}</p>
      <ToldOnceCard of={unit.id} />
      <Tabs id={unit.id} />
      <Suspense fallback={<Skeleton />}>
        <Outlet />
      </Suspense>
      <StopUnits units={toStop} onClose={() => setToStop([])} />
      <DestroyUnits
        units={doomed}
        onClose={() => setDoomed([])}
        onDone={() => void navigate({ to: '/t/$team/units', params: { team: team.slug } })}
      />
    </>
  )
}
