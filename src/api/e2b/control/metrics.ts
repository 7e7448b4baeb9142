// What sandboxes use: at this moment, and by the minute in the last day.

import { z } from 'zod'
import type { MetricsHistory } from '../../../contract/metrics-history.ts'
import type { UnitMetrics } from '../../../contract/metrics.ts'
import { parse } from '../../../contract/parse.ts'
import { toAppError } from '../../http/errors.ts'
import type { ControlAnswer, ControlCall } from './call.ts'
import { ofSandbox } from './look.ts'

const METRICS = 'GET /v1/units/{id}/metrics'
const HISTORY = 'GET /v1/units/{id}/metrics/history'

const rangeSchema = z.object({
  start: z.coerce.number().default(0),
  end: z.coerce.number().default(Infinity),
})

/** A client asks up to its own now, which it rounds. */
const CLOCKS_APART_S = 5

/** The minutes that are asked for, and this moment if that is. */
export async function readMetrics(call: ControlCall, sandboxId: string): Promise<ControlAnswer> {
  const { start, end } = parse(rangeSchema, Object.fromEntries(call.query))
  const now = (await ofSandbox(call, sandboxId, METRICS, {})) as UnitMetrics
  const past = (await ofSandbox(call, sandboxId, HISTORY, { range: 'day' })) as MetricsHistory
  const sample = sampleOf(now)
  const body = [...minutesOf(past, now), ...(sample === null ? [] : [sample])].filter(
    ({ timestampUnix }) => timestampUnix >= start - CLOCKS_APART_S && timestampUnix <= end + CLOCKS_APART_S,
  )
  return { status: 200, body }
}

/** The page cache is not kept by the minute, and the disk is as it is now. */
function minutesOf({ points, stepSeconds, limitCpus }: MetricsHistory, { run, disk }: UnitMetrics): Sample[] {
  return points.map(({ at, cpuMs, memoryBytes }) => ({
    timestamp: at,
    timestampUnix: Math.floor(Date.parse(at) / 1000),
    cpuCount: Math.max(1, Math.ceil(limitCpus)),
    cpuUsedPct: shareOf(cpuMs, stepSeconds * 1000, limitCpus),
    memUsed: memoryBytes,
    memTotal: run?.memory.limitBytes ?? memoryBytes,
    memCache: 0,
    diskUsed: disk.usedBytes ?? 0,
    diskTotal: disk.limitBytes,
  }))
}

/** In percent, with one digit behind the point. */
function shareOf(usedMs: number, overMs: number, limitCpus: number): number {
  return Math.min(100, Math.round((1000 * usedMs) / overMs / limitCpus) / 10)
}

const idsSchema = z.object({
  sandbox_ids: z
    .string()
    .transform((ids) => ids.split(','))
    .pipe(z.array(z.string().min(1)).max(100, 'must be at most 100 ids')),
})

/** GET /sandboxes/metrics: of several, without those that are not there or do not run. */
export async function readManyMetrics(call: ControlCall): Promise<ControlAnswer> {
  const { sandbox_ids: ids } = parse(idsSchema, Object.fromEntries(call.query))
  const samples: Record<string, Sample> = {}
  for (const id of new Set(ids)) {
    const metrics = await ofSandbox(call, id, METRICS, {}).catch((error: unknown) => {
      if (toAppError(error).status !== 404) throw error
      return null
    })
    const sample = metrics === null ? null : sampleOf(metrics as UnitMetrics)
    if (sample !== null) samples[id] = sample
  }
  return { status: 200, body: { sandboxes: samples } }
}

type Sample = NonNullable<ReturnType<typeof sampleOf>>

/** The processor's share is that of the whole run so far. Null for a sandbox that does not run. */
export function sampleOf({ run, disk, at }: UnitMetrics) {
  if (run === null) return null
  const ranMs = Math.max(1, Date.parse(at) - Date.parse(run.startedAt ?? at))
  return {
    timestamp: at,
    timestampUnix: Math.floor(Date.parse(at) / 1000),
    cpuCount: Math.max(1, Math.ceil(run.cpu.limitCpus)),
    cpuUsedPct: shareOf(run.cpu.usedMs, ranMs, run.cpu.limitCpus),
    memUsed: run.memory.usedBytes,
    memTotal: run.memory.limitBytes,
    memCache: run.memory.cacheBytes,
    diskUsed: disk.usedBytes ?? 0,
    diskTotal: disk.limitBytes,
  }
}
