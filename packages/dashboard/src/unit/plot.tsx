// Lines over time, by default the last five minutes. With the arrow keys or the mouse a sample is read in words, in all plots at once.

import { linesOf, type Plotted } from './metric-points.ts'
import styles from './metrics.module.css'

const BOX = { width: 480, height: 96 }
const SPAN_MS = 5 * 60_000

export type Series = { points: readonly Plotted[]; kind: 'first' | 'second' }

export function Plot({
  label,
  series,
  top,
  topText,
  at,
  said,
  onRead,
  span,
}: {
  label: string
  series: readonly Series[]
  /** The value at the upper edge, and what it is in words. */
  top: number
  topText: string
  /** The sample that is read. */
  at: number
  said: string
  /** Null: the newest again. */
  onRead: (index: number | null) => void
  /** Default: five minutes up to the newest point. `gapMs`: points farther apart are not joined. */
  span?: { fromMs: number; toMs: number; gapMs: number }
}) {
  const points = series[0]?.points ?? []
  const newestMs = points.at(-1)?.atMs ?? 0
  const range = { ...(span ?? { fromMs: newestMs - SPAN_MS, toMs: newestMs }), top }
  const rangeMs = range.toMs - range.fromMs
  const markX = (((points[at]?.atMs ?? range.toMs) - range.fromMs) / rangeMs) * BOX.width
  const readNear = (share: number) => {
    if (points.length === 0) return
    const wanted = range.fromMs + share * rangeMs
    const far = points.map(({ atMs }) => Math.abs(atMs - wanted))
    onRead(far.indexOf(Math.min(...far)))
  }
  return (
    <div className={styles.plot}>
      <span className={styles.top}>{topText}</span>
      <div
        role="slider"
        tabIndex={0}
        className={styles.lines}
        aria-label={label}
        aria-valuemin={1}
        aria-valuemax={Math.max(1, points.length)}
        aria-valuenow={Math.max(1, at + 1)}
        aria-valuetext={said}
        onPointerMove={({ currentTarget, clientX }) => {
          const { left, width } = currentTarget.getBoundingClientRect()
          readNear((clientX - left) / width)
        }}
        onPointerLeave={() => onRead(null)}
        onBlur={() => onRead(null)}
        onKeyDown={(event) => {
          const by = { ArrowLeft: -1, ArrowRight: 1, Home: -points.length, End: points.length }[event.key]
          if (by === undefined) return
          event.preventDefault()
          const next = Math.min(points.length - 1, Math.max(0, at + by))
          onRead(next === points.length - 1 ? null : next)
        }}
      >
        <svg viewBox={`0 0 ${BOX.width} ${BOX.height}`} preserveAspectRatio="none" aria-hidden="true">
          {series.map(({ points: own, kind }) =>
            linesOf(own, range, BOX).map((line) => (
              <g key={`${kind} ${line[0]?.[0]}`} className={styles[kind]}>
                {kind === 'first' && <path className={styles.area} d={areaOf(line)} />}
                <path className={styles.line} d={pathOf(line)} />
              </g>
            )),
          )}
          <path className={styles.mark} d={`M${markX} 0V${BOX.height}`} />
        </svg>
      </div>
    </div>
  )
}

/** A single sample is a dot: a line of no length, with round ends. */
const pathOf = (line: [number, number][]) =>
  `M${line.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join('L')}h0`

const areaOf = (line: [number, number][]) => `${pathOf(line)}V${BOX.height}H${line[0]?.[0].toFixed(1) ?? 0}Z`
