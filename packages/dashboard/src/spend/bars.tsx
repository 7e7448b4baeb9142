// The cost of each day as a bar. With the arrow keys or the mouse a day is read in words.

import type { Contract } from '@berth/sdk'
import { useState } from 'react'
import { euros } from '../../../../src/lib/money.ts'
import { Money } from '../ui/format.tsx'
import styles from './spend.module.css'

const WIDTH = 960
const HEIGHT = 160

export function Bars({ days }: { days: Contract.Usage['days'] }) {
  const [read, setRead] = useState(days.length - 1)
  const at = Math.min(read, days.length - 1)
  const top = Math.max(...days.map(({ costCents }) => costCents), 1e-9)
  const step = WIDTH / days.length
  const day = days[at]
  const said = day === undefined ? '' : `${sayDate(day.date)}: ${euros(day.costCents)}`
  return (
    <div className={styles.plot}>
      <div
        role="slider"
        tabIndex={0}
        className={styles.bars}
        aria-label="Cost per day"
        aria-valuemin={1}
        aria-valuemax={days.length}
        aria-valuenow={at + 1}
        aria-valuetext={said}
        onKeyDown={(event) => {
          const by = { ArrowLeft: -1, ArrowRight: 1, Home: -days.length, End: days.length }[event.key]
          if (by === undefined) return
          event.preventDefault()
          setRead(Math.min(days.length - 1, Math.max(0, at + by)))
        }}
      >
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          {days.map(({ date, costCents }, index) => {
            const height = (costCents / top) * (HEIGHT - 4)
            return (
              <g key={date} onPointerEnter={() => setRead(index)}>
                <rect
                  className={index === at ? styles.marked : styles.unmarked}
                  x={index * step}
                  y={0}
                  width={step}
                  height={HEIGHT}
                />
                <rect
                  className={styles.cost}
                  x={index * step + step * 0.14}
                  y={HEIGHT - height}
                  width={step * 0.72}
                  height={height}
                />
              </g>
            )
          })}
        </svg>
      </div>
      <p className={styles.readout}>
        {day !== undefined && (
          <>
            {sayDate(day.date)}: <Money cents={day.costCents} />
          </>
        )}
      </p>
    </div>
  )
}

const dayText = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  timeZone: 'UTC',
})
const sayDate = (date: string) => dayText.format(new Date(`${date}T00:00:00Z`))
