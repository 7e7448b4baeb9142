// What sandboxes use, as it is at this moment.

import { z } from 'zod'
import type { UnitMetrics } from '../../../contract/metrics.ts'
import { parse } from '../../../contract/parse.ts'
import { toAppError } from '../../http/errors.ts'
import type { ControlAnswer, ControlCall } from './call.ts'
import { ofSandbox } from './look.ts'

const METRICS = 'GET /v1/units/{id}/metrics'

const rangeSchema = z.object({
  start: z.coerce.number().default(0),
  end: z.coerce.number().default(Infinity),
})

/** A client asks up to its own now, which it rounds. */
const CLOCKS_APART_S = 5

/** One sample, of this moment if that is asked for. */
export async function readMetrics(call: ControlCall, sandboxId: string): Promise<ControlAnswer> {
  const sample = sampleOf((await ofSandbox(call, sandboxId, METRICS, {})) as UnitMetrics)
  const { start, end } = parse(rangeSchema, Object.fromEntries(call.query))
  const isAsked =
    sample !== null && sample.timestampUnix >= start && sample.timestampUnix <= end + CLOCKS_APART_S
  return { status: 200, body: isAsked ? [sample] : [] }
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
    cpuUsedPct: Math.min(100, Math.round((1000 * run.cpu.usedMs) / ranMs / run.cpu.limitCpus) / 10),
    memUsed: run.memory.usedBytes,
    memTotal: run.memory.limitBytes,
    memCache: run.memory.cacheBytes,
    diskUsed: disk.usedBytes ?? 0,
    diskTotal: disk.limitBytes,
  }
}
