// Rows of units. The head scrolls with the rows, so that the columns stay aligned; one menu serves all rows.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react'
import { recentQuery } from '../api/team-queries.ts'
import { useKeys } from '../shell/keys.ts'
import { useTeam } from '../shell/team-context.ts'
import { useNow } from '../ui/format.tsx'
import { createMenu, SharedMenu } from '../ui/menu.tsx'
import { useUnitAction } from './actions.ts'
import { unitMenu } from './unit-menu.ts'
import { UnitRow } from './unit-row.tsx'
import styles from './unit-table.module.css'

type Unit = Contract.Unit

const menu = createMenu<Unit>()
/** As in the style sheet; on a phone a row has two lines. */
const rowPx = () =>
  matchMedia('(max-width: 800px)').matches ? 60 : matchMedia('(pointer: coarse)').matches ? 44 : 36
const narrow = matchMedia('(max-width: 800px)')

export function UnitTable({
  units,
  chosen,
  onChoose,
  onStop,
  onDestroy,
}: {
  units: Unit[]
  chosen: ReadonlySet<string>
  onChoose: (ids: ReadonlySet<string>) => void
  onStop: (units: Unit[]) => void
  onDestroy: (units: Unit[]) => void
}) {
  const team = useTeam()
  const navigate = useNavigate()
  const now = useNow()
  const scroller = useRef<HTMLDivElement>(null)
  const [at, setAt] = useState(0)
  const { mutate } = useUnitAction(team.id)
  const rows = useVirtualizer({
    count: units.length,
    getScrollElement: () => scroller.current,
    estimateSize: rowPx,
    overscan: 12,
    scrollMargin: 32,
    getItemKey: (index) => units[index]?.id ?? index,
  })
  useEffect(() => {
    const measure = () => rows.measure()
    narrow.addEventListener('change', measure)
    return () => narrow.removeEventListener('change', measure)
  }, [rows])
  const { data: recent } = useQuery(recentQuery(team.id))
  const cpuOf = useMemo(() => new Map(recent?.units.map(({ id, cpuMs }) => [id, cpuMs])), [recent])
  const here = units[Math.min(at, units.length - 1)]
  const open = (unit: Unit) =>
    void navigate({ to: '/t/$team/units/$id', params: { team: team.slug, id: unit.id } })
  const toggle = (unit: Unit) => {
    const next = new Set(chosen)
    if (!next.delete(unit.id)) next.add(unit.id)
    onChoose(next)
  }
  const move = (to: number) => {
    const next = Math.max(0, Math.min(units.length - 1, to))
    setAt(next)
    rows.scrollToIndex(next)
    // The row may be made only now.
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`[data-at="${next}"]`)?.focus())
  }
  useKeys('List', [
    { keys: 'j', label: 'Next unit', run: () => move(focusedRow() === null ? at : at + 1) },
    { keys: 'k', label: 'Previous unit', run: () => move(focusedRow() === null ? at : at - 1) },
    { keys: 'x', label: 'Select the unit', run: () => here && toggle(here) },
  ])
  const onKeyDown = (event: KeyboardEvent) => {
    // Keys of buttons within a row are theirs.
    const row = event.target instanceof HTMLElement ? event.target.dataset['at'] : undefined
    if (row === undefined || !here) return
    const steps: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: units.length - 1,
    }
    const to = steps[event.key]
    if (to !== undefined) move(to)
    else if (event.key === 'Enter') open(here)
    else if (event.key === ' ') toggle(here)
    else return
    event.preventDefault()
  }
  return (
    <div ref={scroller} className={styles.scroller} onKeyDown={onKeyDown}>
      <div role="table" aria-label="Units" aria-rowcount={units.length + 1} className={styles.table}>
        <div role="row" aria-rowindex={1} className={`${styles.row} ${styles.head}`}>
          <span role="columnheader">
            <span className="visually-hidden">Selected</span>
          </span>
          <span role="columnheader">Name</span>
          <span role="columnheader" className={styles.stack}>
            Stack
          </span>
          <span role="columnheader" className={styles.image}>
            Image
          </span>
          <span role="columnheader" className={styles.size}>
            Size
          </span>
          <span role="columnheader" className={styles.day}>
            Last day
          </span>
          <span role="columnheader" className={styles.sleeps}>
            Sleeps
          </span>
          <span role="columnheader" className={styles.cost}>
            Cost
          </span>
          <span role="columnheader" className={styles.used}>
            Last used
          </span>
          <span role="columnheader">
            <span className="visually-hidden">Actions</span>
          </span>
        </div>
        <div role="rowgroup" className={styles.rows} style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((item) => {
            const unit = units[item.index]
            return (
              unit && (
                <UnitRow
                  key={item.key}
                  unit={unit}
                  at={item.index}
                  top={item.start - 32}
                  isHere={item.index === Math.min(at, units.length - 1)}
                  isChosen={chosen.has(unit.id)}
                  cpu={cpuOf.get(unit.id)}
                  minute={Math.floor(now / 10_000)}
                  menu={menu}
                  onOpen={open}
                  onToggle={toggle}
                  onFocus={setAt}
                />
              )
            )
          })}
        </div>
      </div>
      <SharedMenu
        menu={menu}
        items={(unit) =>
          unitMenu(units.find(({ id }) => id === unit.id) ?? unit, {
            open,
            run: (action) => mutate({ unit, action }),
            stop: () => onStop([unit]),
            destroy: () => onDestroy([unit]),
          })
        }
      />
    </div>
  )
}

function focusedRow(): string | null {
  return document.activeElement?.getAttribute('data-at') ?? null
}
