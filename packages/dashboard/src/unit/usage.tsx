// What the unit used: processor, memory and traffic over a day or a month, and below them when it ran. Sleeps are gaps.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { byteSize } from '../../../../src/lib/byte-size.ts'
import { explain } from '../api/explain.ts'
import { pricingQuery } from '../api/queries.ts'
import { historyQuery } from '../api/team-queries.ts'
import { useTeam } from '../shell/team-context.ts'
import { amount, span, timeOfDay, dayOf } from '../ui/format.tsx'
import { Card, Failure } from '../ui/page-parts.tsx'
import { Segments } from '../ui/segments.tsx'
import { Plot, type Series } from './plot.tsx'
import styles from './usage.module.css'

type History = Contract.MetricsHistory
type Point = History['points'][number]

const MB = 1_000_000
const none: readonly Point[] = []
const ranges = { Day: 'day', Month: 'month' } as const

export function Usage({ unit }: { unit: Contract.Unit }) {
  const team = useTeam()
  const [shown, setShown] = useState<keyof typeof ranges>('Day')
  const range = ranges[shown]
  const { data, error, refetch } = useQuery(historyQuery(team.id, unit.id, range))
  const [read, setRead] = useState<number | null>(null)
  const samples = data?.range === range ? data.points : none
  const points = useMemo(() => merged(samples, range), [samples, range])
  return (
    <Card
      title="Usage"
      action={
        <Segments
          label="Time"
          value={shown}
          options={['Day', 'Month']}
          onChange={(next) => {
            setRead(null)
            setShown(next)
          }}
        />
      }
    >
      {error !== null && data === undefined ? (
        <Failure {...explain(error)} onRetry={() => void refetch()} />
      ) : (
        <Plots history={data} points={points} read={read} onRead={setRead} />
      )}
      <div className={styles.foot}>
        <Runs points={samples} history={data} size={unit.size} />
        <Link to="/t/$team/units/$id/metrics" params={{ team: team.slug, id: unit.id }}>
          Live metrics
        </Link>
      </div>
    </Card>
  )
}

/** Steps of a plot: more than its pixels can show are merged, by their mean, memory by its most. */
const mergedSteps = { day: 5, month: 3 } as const

function merged(points: readonly Point[], range: History['range']): Point[] {
  const many = mergedSteps[range]
  const stepMs = many * (range === 'day' ? 60_000 : 3_600_000)
  const groups = Map.groupBy(points, ({ at }) => Math.floor(Date.parse(at) / stepMs))
  return [...groups.values()].flatMap((group) => {
    const [first] = group
    const mean = (of: (point: Point) => number) =>
      group.reduce((sum, each) => sum + of(each), 0) / group.length
    return first === undefined
      ? []
      : [
          {
            at: first.at,
            cpuMs: mean(({ cpuMs }) => cpuMs),
            memoryBytes: Math.max(...group.map(({ memoryBytes }) => memoryBytes)),
            receivedBytes: mean(({ receivedBytes }) => receivedBytes),
            sentBytes: mean(({ sentBytes }) => sentBytes),
          },
        ]
  })
}

function Plots({
  history,
  points,
  read,
  onRead,
}: {
  history: History | undefined
  points: readonly Point[]
  read: number | null
  onRead: (index: number | null) => void
}) {
  const stepMs = (history?.stepSeconds ?? 60) * 1000
  const toMs = Date.parse(history?.until ?? '') || 1
  const bucketMs = stepMs * mergedSteps[history?.range ?? 'day']
  const time = { fromMs: Date.parse(history?.from ?? '') || 0, toMs, gapMs: bucketMs * 1.9 }
  const at = Math.min(read ?? points.length - 1, points.length - 1)
  const point = points[at]
  // The newest is what it uses now only if it has not slept since.
  const isPast = point === undefined || (read === null && toMs - Date.parse(point.at) > bucketMs + stepMs * 2)
  const when = read === null || point === undefined ? '' : momentOf(point.at, stepMs)
  const figure = (
    label: string,
    of: ((point: Point) => number)[],
    text: (value: number) => string,
    least: number,
  ) => {
    const top = Math.max(least, ...points.flatMap((each) => of.map((value) => value(each) * 1.15)))
    const value = isPast ? '–' : of.map((each) => text(each(point))).join(' / ')
    const series: Series[] = of.map((each, place) => ({
      kind: place === 0 ? 'first' : 'second',
      points: points.map((one) => ({ atMs: Date.parse(one.at), value: each(one) })),
    }))
    return (
      <div className={styles.figure}>
        <h3>{label}</h3>
        <p className={styles.value}>
          {value} <span>{when}</span>
        </p>
        <Plot
          label={`${label} over time`}
          series={series}
          top={top}
          topText={points.length === 0 ? '' : text(top)}
          at={at}
          said={`${value} ${when}`}
          onRead={onRead}
          span={time}
        />
      </div>
    )
  }
  const second = stepMs / 1000
  const perSecond = (bytes: number) => `${byteSize(Math.round(bytes))}/s`
  return (
    <div className={styles.figures}>
      {figure('Processor', [({ cpuMs }) => cpuMs / stepMs], percent, 0.02)}
      {figure('Memory', [({ memoryBytes }) => memoryBytes], (bytes) => byteSize(Math.round(bytes)), 16 * MB)}
      {figure(
        'Traffic in / out',
        [({ receivedBytes }) => receivedBytes / second, ({ sentBytes }) => sentBytes / second],
        perSecond,
        1000,
      )}
    </div>
  )
}

const percent = (cpus: number) => `${(cpus * 100).toFixed(cpus < 0.0995 ? 1 : 0)}%`
const momentOf = (at: string, stepMs: number) =>
  stepMs < 3_600_000 ? timeOfDay(at) : `${dayOf(at)} ${timeOfDay(at)}`

/** When it ran, as a band: what is between is sleep. A mark is where its memory was saved. */
function Runs({
  points,
  history,
  size,
}: {
  points: readonly Point[]
  history: History | undefined
  size: Contract.Unit['size']
}) {
  const { data: pricing } = useQuery(pricingQuery)
  const centsAnHour = pricing?.sizes.find((each) => each.size === size)?.centsPerHour
  const stepMs = (history?.stepSeconds ?? 60) * 1000
  const fromMs = Date.parse(history?.from ?? '') || 0
  const toMs = Date.parse(history?.until ?? '') || 1
  const runs: { from: number; to: number }[] = []
  for (const { at } of points) {
    const from = Date.parse(at)
    const last = runs.at(-1)
    if (last && from - last.to < stepMs / 2) last.to = from + stepMs
    else runs.push({ from, to: from + stepMs })
  }
  const share = (ms: number) => Math.min(1000, Math.max(0, ((ms - fromMs) / (toMs - fromMs)) * 1000))
  const ranMs = points.length * stepMs
  const words =
    points.length === 0
      ? 'No samples yet: one is taken each minute.'
      : `Ran ${span(ranMs)} of ${span(toMs - fromMs)}${costOf(ranMs, centsAnHour)}.`
  const checkpoints = history?.checkpoints ?? []
  return (
    <div className={styles.runs}>
      <svg
        viewBox="0 0 1000 10"
        preserveAspectRatio="none"
        role="img"
        aria-label={[words, savedWords(checkpoints)].filter(Boolean).join(' ')}
      >
        <rect className={styles.asleep} width="1000" height="10" />
        {runs.map(({ from, to }) => (
          <rect
            key={from}
            className={styles.awake}
            x={share(from)}
            width={Math.max(2, share(to) - share(from))}
            height="10"
          />
        ))}
        {checkpoints.map(({ at, kept }) => (
          <rect
            key={at}
            className={kept ? styles.saved : styles.lost}
            x={Math.min(996, share(Date.parse(at)))}
            width="4"
            height="10"
          />
        ))}
      </svg>
      <p>{words}</p>
    </div>
  )
}

function savedWords(checkpoints: History['checkpoints']): string {
  const kept = checkpoints.filter((each) => each.kept).length
  const lost = checkpoints.length - kept
  const times = (many: number) => (many === 1 ? 'once' : `${many} times`)
  const words = [kept > 0 && `saved ${times(kept)}`, lost > 0 && `lost ${times(lost)}`].filter(Boolean)
  return words.length === 0 ? '' : `Memory ${words.join(', ')}.`
}

/** Its samples are of whole minutes or hours; the bill is exact to the moment. */
const costOf = (ranMs: number, centsAnHour: number | undefined) =>
  centsAnHour === undefined ? '' : `, for about ${amount((ranMs / 3_600_000) * centsAnHour)}`
