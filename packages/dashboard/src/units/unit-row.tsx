// One row of the list.

import type { Contract } from '@berth/sdk'
import Ellipsis from 'lucide-react/icons/ellipsis'
import { memo } from 'react'
import { useTeam } from '../shell/team-context.ts'
import { Money, Time } from '../ui/format.tsx'
import { type MenuHandle, MenuTrigger } from '../ui/menu.tsx'
import { Sparkline } from '../ui/sparkline.tsx'
import { State } from '../ui/state.tsx'
import { reasonOf } from './sentence.ts'
import { stackOf } from './select.ts'
import styles from './unit-table.module.css'

type Unit = Contract.Unit

export const UnitRow = memo(function UnitRow({
  unit,
  at,
  top,
  isHere,
  isChosen,
  cpu,
  minute,
  menu,
  onOpen,
  onToggle,
  onFocus,
}: {
  unit: Unit
  at: number
  top: number
  isHere: boolean
  isChosen: boolean
  /** Processor time of the last day by the hour, once it is known. */
  cpu: readonly (number | null)[] | undefined
  /** Changes when times are to be written again. */
  minute: number
  menu: MenuHandle<Unit>
  onOpen: (unit: Unit) => void
  onToggle: (unit: Unit) => void
  onFocus: (at: number) => void
}) {
  const { slug } = useTeam()
  const reason = reasonOf(unit, minute * 10_000)
  return (
    <div
      role="row"
      aria-rowindex={at + 2}
      aria-selected={isChosen}
      data-at={at}
      tabIndex={isHere ? 0 : -1}
      className={`${styles.row} ${styles.unit}`}
      style={{ transform: `translateY(${top}px)` }}
      onFocus={() => onFocus(at)}
    >
      <span role="cell">
        <input
          type="checkbox"
          tabIndex={-1}
          checked={isChosen}
          aria-label={`Select ${unit.name}`}
          onChange={() => onToggle(unit)}
        />
      </span>
      <span role="cell" className={styles.name} title={reason}>
        <State state={unit.state} quiet />
        <a
          href={`/t/${encodeURIComponent(slug)}/units/${unit.id}`}
          tabIndex={-1}
          className={styles.link}
          onClick={(event) => {
            // Into another tab or window the browser opens it itself.
            if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
            event.preventDefault()
            onOpen(unit)
          }}
        >
          {unit.name}
        </a>
        {unit.state === 'error' && <span className={styles.wrong}>{unit.error}</span>}
        <span className={styles.second}>
          {unit.state === 'error' ? unit.error : `${unit.size} · ${unit.image}`}
          {unit.sleepsAt !== null && (
            <>
              {' '}
              · sleeps <Time at={unit.sleepsAt} />
            </>
          )}
        </span>
      </span>
      <span role="cell" className={styles.stack}>
        {stackOf(unit)}
      </span>
      <span role="cell" className={styles.image} title={unit.image}>
        {unit.image}
      </span>
      <span role="cell" className={styles.size}>
        {unit.size}
      </span>
      <span role="cell" className={styles.day}>
        {cpu && <Sparkline values={cpu} label="Processor in the last day" />}
      </span>
      <span role="cell" className={styles.sleeps}>
        {unit.sleepsAt === null ? '–' : <Time at={unit.sleepsAt} />}
      </span>
      <span role="cell" className={styles.cost}>
        <Money cents={unit.costCentsSoFar} short />
      </span>
      <span role="cell" className={styles.used}>
        {unit.lastUsedAt === null ? '–' : <Time at={unit.lastUsedAt} />}
      </span>
      <span role="cell">
        <MenuTrigger menu={menu} payload={unit} label={`Actions of ${unit.name}`} isTabStop={isHere}>
          <Ellipsis aria-hidden="true" />
        </MenuTrigger>
      </span>
    </div>
  )
})
