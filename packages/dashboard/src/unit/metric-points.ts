// Turns counts into the points of the plots: a rate is the difference of two samples of one machine.

import type { Metrics } from './use-metrics.ts'

/** Null: not counted, or not known between these two samples. */
export type Point = {
  atMs: number
  /** Processors in use. */
  cpus: number | null
  /** The part of the time in which it was held back, 0 to 1. */
  limited: number | null
  usedBytes: number | null
  cacheBytes: number | null
  pids: number | null
  /** Bytes a second. */
  received: number | null
  sent: number | null
  read: number | null
  written: number | null
}

/** Farther apart, something is missing between them: the page was out of sight, or the connection lost. */
export const GAP_MS = 7000

export function pointsOf(samples: readonly Metrics[]): Point[] {
  return samples.map((sample, index) => pointOf(samples[index - 1] ?? null, sample))
}

function pointOf(before: Metrics | null, { at, run }: Metrics): Point {
  const atMs = Date.parse(at)
  const passedMs = before === null ? 0 : atMs - Date.parse(before.at)
  const last = before?.run ?? null
  const isOneRun = run !== null && last?.startedAt === run.startedAt && passedMs > 0 && passedMs < GAP_MS
  // A count that goes down has started from 0 again.
  const each = (now: number | undefined, then: number | undefined): number | null =>
    isOneRun && now !== undefined && then !== undefined ? Math.max(0, now - then) / passedMs : null
  const perSecond = (now: number | undefined, then: number | undefined): number | null => {
    const perMs = each(now, then)
    return perMs === null ? null : perMs * 1000
  }
  return {
    atMs,
    cpus: each(run?.cpu.usedMs, last?.cpu.usedMs),
    limited: each(run?.cpu.limitedMs, last?.cpu.limitedMs),
    usedBytes: run?.memory.usedBytes ?? null,
    cacheBytes: run?.memory.cacheBytes ?? null,
    pids: run?.pids.count ?? null,
    received: perSecond(run?.network?.receivedBytes, last?.network?.receivedBytes),
    sent: perSecond(run?.network?.sentBytes, last?.network?.sentBytes),
    read: perSecond(run?.io?.readBytes, last?.io?.readBytes),
    written: perSecond(run?.io?.writtenBytes, last?.io?.writtenBytes),
  }
}

export type Plotted = { atMs: number; value: number | null }

/** Lines from left to right, one for each stretch without a gap, in a box of `width` by `height`. */
export function linesOf(
  points: readonly Plotted[],
  { fromMs, toMs, top, gapMs = GAP_MS }: { fromMs: number; toMs: number; top: number; gapMs?: number },
  { width, height }: { width: number; height: number },
): [x: number, y: number][][] {
  const lines: [number, number][][] = []
  let lastMs = -Infinity
  for (const { atMs, value } of points) {
    if (value === null) {
      lastMs = -Infinity
      continue
    }
    const x = ((atMs - fromMs) / (toMs - fromMs)) * width
    const y = height - Math.min(1, value / top) * height
    if (atMs - lastMs < gapMs) lines.at(-1)?.push([x, y])
    else lines.push([[x, y]])
    lastMs = atMs
  }
  return lines
}
