// Keeps what units use: one sample a minute of each that runs, a day by the minute and a month by the hour. A unit has at
// most 2160 rows. Neither sampling nor reading wakes a unit or counts as a use.

import type { App } from '../../app.ts'
import type { MetricsHistory, MetricsRange, RecentMetrics } from '../../contract/metrics-history.ts'
import { isEngineError } from '../../engine/errors.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../lib/clock.ts'
import { createSemaphore } from '../../lib/concurrency/semaphore.ts'
import {
  addUnitSamples,
  deleteUnitMetrics,
  listRunningUnits,
  listTeamCpu,
  listUnitMetrics,
  type UnitSample,
} from '../../store/unit-metrics.ts'
import { deleteUnitCheckpoints, listUnitCheckpoints } from '../../store/unit-checkpoints.ts'
import type { Caller } from '../credentials/caller.ts'
import { getRecord } from './get.ts'
import { machineSizes } from './model/machine.ts'

const ranges = {
  day: { step: 'minute', stepMs: MINUTE, keptMs: DAY },
  month: { step: 'hour', stepMs: HOUR, keptMs: 30 * DAY },
} as const satisfies Record<MetricsRange, object>

/** Few, so that the calls of people do not wait behind them. */
const SAMPLES_AT_ONCE = 4
const ROWS_AT_ONCE = 500
const MAX_RECENT_UNITS = 1000
const MAX_CHECKPOINTS = 200

export async function readMetricsHistory(
  app: App,
  caller: Caller,
  id: string,
  range: MetricsRange,
): Promise<MetricsHistory> {
  const unit = await getRecord(app, caller, id)
  const { step, stepMs, keptMs } = ranges[range]
  const until = app.clock.now()
  const from = beginOf(until.getTime() - keptMs + stepMs, stepMs)
  const ofUnit = { unitId: unit.id, since: from }
  const [points, checkpoints] = await Promise.all([
    listUnitMetrics(app.db, { ...ofUnit, step }),
    listUnitCheckpoints(app.db, { ...ofUnit, limit: MAX_CHECKPOINTS }),
  ])
  return {
    unitId: unit.id,
    range,
    from: from.toISOString(),
    until: until.toISOString(),
    stepSeconds: stepMs / SECOND,
    limitCpus: machineSizes[unit.size].cpus,
    points: points.map(({ at, ...used }) => ({ at: at.toISOString(), ...used })),
    checkpoints: checkpoints.map(({ at, kept }) => ({ at: at.toISOString(), kept })),
  }
}

/** The last day of the units of a team, by the hour. */
export async function readRecentMetrics(app: App, { teamId }: Caller): Promise<RecentMetrics> {
  const steps = DAY / HOUR
  const from = beginOf(app.clock.now().getTime() - DAY + HOUR, HOUR)
  const rows = await listTeamCpu(app.db, { teamId, since: from, most: MAX_RECENT_UNITS })
  const units = new Map<string, (number | null)[]>()
  for (const { unitId, at, cpuMs } of rows) {
    const cpu = units.get(unitId) ?? Array.from<number | null>({ length: steps }).fill(null)
    units.set(unitId, cpu)
    const hour = (at.getTime() - from.getTime()) / HOUR
    if (hour < steps) cpu[hour] = cpuMs
  }
  return {
    from: from.toISOString(),
    stepSeconds: HOUR / SECOND,
    units: [...units].map(([id, cpuMs]) => ({ id, cpuMs })),
  }
}

const beginOf = (ms: number, stepMs: number) => new Date(Math.floor(ms / stepMs) * stepMs)

/** One run of the background job. What a host does not answer is left out. */
export async function recordMetrics(app: App): Promise<void> {
  const at = app.clock.now()
  const inTurn = createSemaphore(SAMPLES_AT_ONCE)
  const read = (await listRunningUnits(app.db)).map(
    async (unit) => await inTurn(async () => await sampleOf(app, unit)),
  )
  const samples = (await Promise.all(read)).filter((sample) => sample !== null)
  for (let first = 0; first < samples.length; first += ROWS_AT_ONCE)
    await addUnitSamples(app.db, { at, samples: samples.slice(first, first + ROWS_AT_ONCE) })
}

async function sampleOf(
  app: App,
  { id, hostId }: { id: string; hostId: string },
): Promise<UnitSample | null> {
  try {
    const { run } = await app.fleet.engineOf({ hostId }).metrics(id)
    return (
      run && {
        unitId: id,
        generation: run.generation,
        cpuMs: run.cpu.usedMs,
        memoryBytes: run.memory.usedBytes,
        receivedBytes: run.network?.receivedBytes ?? 0,
        sentBytes: run.network?.sentBytes ?? 0,
      }
    )
  } catch (error) {
    // It was destroyed meanwhile, or its host does not answer, of which the log has a line already.
    if (isEngineError(error)) return null
    throw error
  }
}

const GROUPS_A_ROUND = 20
const DELETED_AT_ONCE = 5000

/** One run of the background job. */
export async function forgetOldMetrics({ db, clock }: App): Promise<void> {
  const endOf = (keptMs: number) => new Date(clock.now().getTime() - keptMs)
  for (const { step, keptMs } of Object.values(ranges))
    await inGroups((limit) => deleteUnitMetrics(db, { step, before: endOf(keptMs), limit }))
  await inGroups((limit) => deleteUnitCheckpoints(db, { before: endOf(ranges.month.keptMs), limit }))
}

async function inGroups(deleteSome: (limit: number) => Promise<number>): Promise<void> {
  for (let group = 0; group < GROUPS_A_ROUND; group += 1)
    if ((await deleteSome(DELETED_AT_ONCE)) < DELETED_AT_ONCE) break
}
