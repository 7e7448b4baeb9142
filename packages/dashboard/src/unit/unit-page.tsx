// One unit: its facts and actions, and below them one of its tabs, each with an address of its own.

import type { Contract } from '@berth/sdk'
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
              {unit.size} · <Money cents={unit.costCentsSoFar} /> so far
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
      <Tabs id={unit.id} />
      <Suspense fallback={<Skeleton />}>
        <Outlet />
      </Suspense>
      <DestroyUnits
        units={doomed}
        onClose={() => setDoomed([])}
        onDone={() => void navigate({ to: '/t/$team/units', params: { team: team.slug } })}
      />
    </>
  )
}
