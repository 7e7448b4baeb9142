// One unit: its head, and below it one of its tabs, each with an address of its own.

import { type Contract, isBerthError } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { Outlet, useParams } from '@tanstack/react-router'
import { Suspense, useState } from 'react'
import { explain } from '../api/explain.ts'
import { unitQuery } from '../api/queries.ts'
import { whyNot } from '../api/unit-can.ts'
import { useKeys } from '../shell/keys.ts'
import { NotHere } from '../shell/not-here.tsx'
import { useTeam } from '../shell/team-context.ts'
import { Failure, PageHead, Skeleton } from '../ui/page-parts.tsx'
import { type QuickAction, useUnitAction } from '../units/actions.ts'
import { StopUnits } from '../units/stop-units.tsx'
import { ToldOnceCard } from '../units/told-once-card.tsx'
import { UnitHead } from './head.tsx'
import { Tabs } from './tabs.tsx'
import { UnitContext } from './unit-context.ts'

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
  return (
    <>
      <UnitHead unit={unit} busy={isPending ? variables.action : null} onRun={run} onStop={stop} />
      <ToldOnceCard of={unit.id} />
      <Tabs id={unit.id} />
      <Suspense fallback={<Skeleton />}>
        <Outlet />
      </Suspense>
      <StopUnits units={toStop} onClose={() => setToStop([])} />
    </>
  )
}
