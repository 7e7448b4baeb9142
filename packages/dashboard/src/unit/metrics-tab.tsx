// Shows what the unit uses, while the page is visible. Reading wakes nothing.

import { type ReactNode, useMemo, useState } from 'react'
import { explain } from '../api/explain.ts'
import { useTeam } from '../shell/team-context.ts'
import { byteSize } from '../../../../src/lib/byte-size.ts'
import { span } from '../ui/format.tsx'
import { Failure, Skeleton } from '../ui/page-parts.tsx'
import { type Point, pointsOf } from './metric-points.ts'
import { Plot, type Series } from './plot.tsx'
import { useUnit } from './unit-context.ts'
import { type Metrics, useMetrics } from './use-metrics.ts'
import type { StreamStatus } from './use-stream.ts'
import styles from './metrics.module.css'

type Run = NonNullable<Metrics['run']>
/** A figure with its plot: of the point that is read, or of the newest. */
type Figure = {
  label: string
  value: (point: Point, run: Run) => string
  note: (point: Point, run: Run) => string
  series: { of: (point: Point) => number | null; kind: Series['kind'] }[]
  top: (points: readonly Point[], run: Run) => number
  topText: (top: number) => string
}

const percent = (cpus: number) => `${(cpus * 100).toFixed(cpus < 0.0995 ? 1 : 0)}%`
const aSecond = (count: number | null) => (count === null ? '–' : `${byteSize(Math.round(count))}/s`)
const most = (points: readonly Point[], ...of: ((point: Point) => number | null)[]) =>
  Math.max(0, ...points.flatMap((point) => of.map((each) => each(point) ?? 0)))

const figures: Figure[] = [
  {
    label: 'Processor',
    value: ({ cpus }) => (cpus === null ? '–' : percent(cpus)),
    note: ({ limited }, { cpu }) =>
      `of ${percent(cpu.limitCpus)} of a processor${(limited ?? 0) > 0.01 ? `; held back ${percent(limited ?? 0)} of the time` : ''}`,
    series: [{ of: ({ cpus }) => cpus, kind: 'first' }],
    top: (points, { cpu }) =>
      Math.max(
        cpu.limitCpus,
        most(points, ({ cpus }) => cpus),
      ),
    topText: percent,
  },
  {
    label: 'Memory',
    value: ({ usedBytes }) => (usedBytes === null ? '–' : byteSize(usedBytes)),
    note: ({ cacheBytes }, { memory }) =>
      `of ${byteSize(memory.limitBytes)}, and ${byteSize(cacheBytes ?? 0)} of files${memory.peakBytes === null ? '' : `; at most ${byteSize(memory.peakBytes)} of both so far`}`,
    series: [{ of: ({ usedBytes }) => usedBytes, kind: 'first' }],
    top: (_points, { memory }) => memory.limitBytes,
    topText: byteSize,
  },
  {
    label: 'Network',
    value: ({ received }) => aSecond(received),
    note: ({ sent }, { network }) =>
      `in, ${aSecond(sent)} out (dashed)${network === null ? '' : `; ${byteSize(network.receivedBytes)} and ${byteSize(network.sentBytes)} in all`}`,
    series: [
      { of: ({ received }) => received, kind: 'first' },
      { of: ({ sent }) => sent, kind: 'second' },
    ],
    top: (points) =>
      Math.max(
        1024,
        most(
          points,
          (point) => point.received,
          (point) => point.sent,
        ),
      ),
    topText: aSecond,
  },
  {
    label: 'Disk traffic',
    value: ({ read }) => aSecond(read),
    note: ({ written }, { io }) =>
      io === null
        ? 'not counted by this host'
        : `read, ${aSecond(written)} written (dashed); ${byteSize(io.readBytes)} and ${byteSize(io.writtenBytes)} in all`,
    series: [
      { of: ({ read }) => read, kind: 'first' },
      { of: ({ written }) => written, kind: 'second' },
    ],
    top: (points) =>
      Math.max(
        1024,
        most(
          points,
          (point) => point.read,
          (point) => point.written,
        ),
      ),
    topText: aSecond,
  },
  {
    label: 'Processes and threads',
    value: ({ pids }) => (pids === null ? '–' : `${pids}`),
    note: (_point, { pids }) => `of ${pids.limit}`,
    series: [{ of: ({ pids }) => pids, kind: 'first' }],
    top: (points) =>
      Math.max(
        10,
        most(points, ({ pids }) => pids),
      ),
    topText: (top) => `${top}`,
  },
]

export function MetricsTab() {
  const unit = useUnit()
  const team = useTeam()
  const { samples, status, again } = useMetrics({ team: team.id, unit })
  const points = useMemo(() => pointsOf(samples), [samples])
  const [read, setRead] = useState<number | null>(null)
  const newest = samples.at(-1)
  if (status.is === 'failed') return <Failure {...explain(status.error)} onRetry={again} />
  if (newest === undefined)
    return status.is === 'lost' ? <p className={styles.said}>{sentences.lost}</p> : <Skeleton />
  const at = Math.min(read ?? samples.length - 1, samples.length - 1)
  // The points of a run that has ended meanwhile stay.
  const run = samples.findLast((sample) => sample.run !== null)?.run ?? null
  return (
    <div className={styles.page}>
      <p role="status" className={styles.said}>
        {sayStatus(newest, status)}
      </p>
      {run !== null &&
        figures.map((figure) => (
          <Shown key={figure.label} figure={figure} run={run} points={points} at={at} onRead={setRead} />
        ))}
      <Disks metrics={newest} />
    </div>
  )
}

function Shown({
  figure: { label, value, note, series, top, topText },
  run,
  points,
  at,
  onRead,
}: {
  figure: Figure
  run: Run
  points: readonly Point[]
  at: number
  onRead: (index: number | null) => void
}) {
  const point = points[at]
  const newest = points.at(-1)
  if (!point || !newest) return null
  const highest = top(points, run)
  const ago = newest.atMs - point.atMs
  const when = at === points.length - 1 ? '' : ` ${span(ago)} before`
  return (
    <Card label={label} value={value(point, run)} when={when} note={note(point, run)}>
      <Plot
        label={`${label} over five minutes`}
        series={series.map(({ of, kind }) => ({
          kind,
          points: points.map((each) => ({ atMs: each.atMs, value: of(each) })),
        }))}
        top={highest}
        topText={topText(highest)}
        at={at}
        said={`${value(point, run)}${when}`}
        onRead={onRead}
      />
    </Card>
  )
}

function Disks({ metrics: { disk, volume } }: { metrics: Metrics }) {
  return (
    <>
      {[
        { label: 'Disk', each: disk },
        { label: 'Volume', each: volume },
      ].map(
        ({ label, each }) =>
          each && (
            <Card
              key={label}
              label={label}
              value={each.usedBytes === null ? '–' : byteSize(each.usedBytes)}
              note={`of ${byteSize(each.limitBytes)}${each.usedBytes === null ? ', and not counted yet' : ', as of half a minute ago at most'}`}
            >
              <div className={styles.rest}>
                <div
                  className={styles.used}
                  style={{ width: `${Math.min(100, (100 * (each.usedBytes ?? 0)) / each.limitBytes)}%` }}
                />
              </div>
            </Card>
          ),
      )}
    </>
  )
}

function Card({
  label,
  value,
  when = '',
  note,
  children,
}: {
  label: string
  value: string
  when?: string
  note: string
  children: ReactNode
}) {
  return (
    <section className={styles.card}>
      <h2>{label}</h2>
      <p className={styles.value}>
        {value}
        <span className={styles.when}>{when}</span>
      </p>
      <p className={styles.note}>{note}</p>
      {children}
    </section>
  )
}

const sentences = {
  lost: 'Not live; trying again.',
  ended: 'It is destroyed, and uses nothing.',
} as const

function sayStatus({ state, run }: Metrics, { is }: StreamStatus): string {
  if (is === 'lost' || is === 'ended') return sentences[is]
  if (run === null) return `It is ${state}: nothing runs in it, and its disk is all there is to count.`
  if (state === 'sleeping') return 'It sleeps, and stands still in memory. Looking does not wake it.'
  return 'Updated every two seconds while this page is open. History is on the overview.'
}
