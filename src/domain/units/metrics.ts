// The current resource usage of a unit. Reading it is not a use of the unit: it wakes nothing, and no process of
// ours runs in the unit.

import type { App } from '../../app.ts'
import type { UnitMetrics } from '../../contract/metrics.ts'
import type { MachineMetrics } from '../../engine/metrics.ts'
import { isEngineError } from '../../engine/errors.ts'
import { SECOND } from '../../lib/clock.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import type { Caller } from '../credentials/caller.ts'
import { getRecord } from './get.ts'
import { engineFailure, notPossibleNow } from './lifecycle/failures.ts'
import { machineSizes } from './model/machine.ts'

const GB = 1024 ** 3
const SAMPLE_EVERY_MS = 2 * SECOND

export async function readMetrics(app: App, caller: Caller, id: string): Promise<UnitMetrics> {
  const unit = await getRecord(app, caller, id)
  if (unit.state === 'destroyed') throw notPossibleNow(unit, 'it uses nothing')
  return showMetrics(app, unit, await machineMetrics(app, unit))
}

/** Yields a sample at once and then every two seconds, until the signal aborts or the unit is destroyed. */
export async function* followMetrics(
  app: App,
  caller: Caller,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<UnitMetrics> {
  while (!signal.aborted) {
    const unit = await getRecord(app, caller, id)
    if (unit.state === 'destroyed') return
    yield showMetrics(app, unit, await machineMetrics(app, unit))
    await app.clock.sleep(SAMPLE_EVERY_MS, signal).catch(() => {})
  }
}

/** Null where there is no machine: it is being made, or was undone after a failure. */
async function machineMetrics(app: App, unit: UnitRecord): Promise<MachineMetrics | null> {
  try {
    return await app.fleet.engineOf(unit).metrics(unit.id)
  } catch (error) {
    if (isEngineError(error, 'unknown_machine')) return null
    throw engineFailure(error, unit)
  }
}

function showMetrics(app: App, unit: UnitRecord, machine: MachineMetrics | null): UnitMetrics {
  const { cpus, diskGb } = machineSizes[unit.size]
  const unknown = (gb: number) => ({ usedBytes: null, limitBytes: gb * GB })
  return {
    unitId: unit.id,
    state: unit.state,
    at: (machine?.at ?? app.clock.now()).toISOString(),
    run: showRun(unit, cpus, machine?.run ?? null),
    disk: machine?.disk ?? unknown(diskGb),
    volume: machine?.volume ?? (unit.spec.volume && unknown(unit.spec.volume.gb)),
  }
}

function showRun(unit: UnitRecord, cpus: number, run: MachineMetrics['run']): UnitMetrics['run'] {
  if (run === null) return null
  const { cpu, memory, pids, network, io } = run
  return {
    startedAt: unit.startedAt?.toISOString() ?? null,
    cpu: { ...cpu, limitCpus: cpus },
    memory,
    pids,
    network,
    io,
  }
}
