// The units of a team, as they are now: thousands of rows, of which only those in sight are rendered.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { lazy, Suspense, useMemo, useRef, useState } from 'react'
import { explain } from '../api/explain.ts'
import { pricingQuery, unitsQuery } from '../api/queries.ts'
import { useKeys } from '../shell/keys.ts'
import { LiveMark } from '../shell/live-bar.tsx'
import { useTeam } from '../shell/team-context.ts'
import { buttonClass } from '../ui/button.tsx'
import { inputClass, Select } from '../ui/field.tsx'
import { count, rate } from '../ui/format.tsx'
import { Empty, Failure, PageHead, Skeleton } from '../ui/page-parts.tsx'
import { StateShape } from '../ui/state.tsx'
import { BulkBar } from './bulk-bar.tsx'
import { countStates } from '../../../../src/contract/states.ts'
import { centsAnHour } from '../../../../src/lib/money.ts'
import { selectUnits } from './select.ts'
import { FILTER, sortLabels, sorts, type UnitsSearch } from './search.ts'
import { UnitTable } from './unit-table.tsx'
import styles from './units-page.module.css'

// Dialogs are loaded with the first question, and the first steps for those who take them.
const FirstRun = lazy(async () => ({ default: (await import('../start/first-run.tsx')).FirstRun }))
const StopUnits = lazy(async () => ({ default: (await import('./stop-units.tsx')).StopUnits }))
const DestroyUnits = lazy(async () => ({ default: (await import('./destroy-units.tsx')).DestroyUnits }))

const route = getRouteApi('/t/$team/units')
const none: Contract.Unit[] = []

export function UnitsPage() {
  const team = useTeam()
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const { data, error, refetch } = useQuery(unitsQuery(team.id))
  const { data: pricing } = useQuery(pricingQuery)
  const all = data?.units ?? none
  const shown = useMemo(() => selectUnits(all, search), [all, search])
  const [chosen, choose] = useState<ReadonlySet<string>>(new Set())
  const [doomed, setDoomed] = useState<Contract.Unit[]>([])
  const [toStop, setToStop] = useState<Contract.Unit[]>([])
  // Of the key that was made among the first steps: they stay until it is kept.
  const [secret, setSecret] = useState<string | null>(null)
  const filter = useRef<HTMLInputElement>(null)
  const change = (next: Partial<{ [K in keyof UnitsSearch]: UnitsSearch[K] | undefined }>) =>
    void navigate({ search: (old) => clean({ ...old, ...next }), replace: true })
  useKeys('Units', [{ keys: '/', label: 'Filter', run: () => filter.current?.focus() }])

  if (error !== null && data === undefined) {
    const { title, text, requestId } = explain(error)
    return (
      <>
        <PageHead title="Units" />
        <Failure title={title} text={text} requestId={requestId} onRetry={() => void refetch()} />
      </>
    )
  }
  const selected = all.filter(({ id }) => chosen.has(id))
  const isFirstRun = data?.isComplete === true && (all.length === 0 || secret !== null)
  return (
    <>
      <PageHead
        title="Units"
        note={
          data &&
          !isFirstRun &&
          `${count(all.length)}${data.isComplete ? '' : '…'} · ${rate(centsAnHour(all, pricing))}`
        }
      >
        <LiveMark />
        <Link
          to="/t/$team/units/new"
          params={{ team: team.slug }}
          className={buttonClass(isFirstRun ? 'plain' : 'main')}
        >
          New unit
        </Link>
      </PageHead>
      {!isFirstRun && (
        <div className={styles.bar}>
          <input
            ref={filter}
            type="search"
            className={inputClass}
            aria-label={FILTER}
            placeholder={FILTER}
            value={search.q ?? ''}
            onChange={(event) => change({ q: event.target.value || undefined })}
          />
          <Select
            aria-label="Sort"
            value={search.sort ?? 'created'}
            options={sorts.map((value) => ({ value, label: sortLabels[value] }))}
            onChange={(sort) => change({ sort: sort === 'created' ? undefined : sort })}
          />
          <div className={styles.states} role="group" aria-label="States">
            {countStates(all).map(([state, number]) => (
              <button
                key={state}
                type="button"
                className={styles.state}
                aria-pressed={search.state === state}
                onClick={() => change({ state: search.state === state ? undefined : state })}
              >
                <StateShape state={state} />
                {state} {count(number)}
              </button>
            ))}
          </div>
        </div>
      )}
      {data === undefined ? (
        <Skeleton rows={12} />
      ) : isFirstRun ? (
        <Suspense fallback={<Skeleton />}>
          <FirstRun units={all} secret={secret} onSecret={setSecret} />
        </Suspense>
      ) : shown.length > 0 ? (
        <UnitTable units={shown} chosen={chosen} onChoose={choose} onStop={setToStop} onDestroy={setDoomed} />
      ) : (
        <Empty title="No unit matches">
          <p>Change or clear the filter.</p>
        </Empty>
      )}
      {selected.length > 0 && (
        <BulkBar
          units={selected}
          onDone={() => choose(new Set())}
          onStop={() => setToStop(selected)}
          onDestroy={() => setDoomed(selected)}
        />
      )}
      {toStop.length > 0 && (
        <Suspense>
          <StopUnits units={toStop} onClose={() => setToStop([])} onDone={() => choose(new Set())} />
        </Suspense>
      )}
      {doomed.length > 0 && (
        <Suspense>
          <DestroyUnits units={doomed} onClose={() => setDoomed([])} onDone={() => choose(new Set())} />
        </Suspense>
      )}
    </>
  )
}

function clean(search: { [K in keyof UnitsSearch]: UnitsSearch[K] | undefined }): UnitsSearch {
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined))
}
