// What must hold whenever nothing is under way: what is on the engine equals what the database wants.

import type { Selectable } from 'kysely'
import type { App } from '../../src/app.ts'
import type { MachineStatus } from '../../src/engine/engine.ts'
import type { FakeEngine } from './fake-engine/fake-engine.ts'
import type { MetersTable } from '../../src/store/meters.ts'
import type { UnitsTable } from '../../src/store/unit-record.ts'

type UnitRow = Pick<
  Selectable<UnitsTable>,
  'id' | 'state' | 'generation' | 'frozen' | 'address' | 'progress' | 'sleeps_at' | 'destroys_at'
>
type RunRow = Pick<Selectable<MetersTable>, 'unit_id' | 'generation' | 'started_at' | 'ended_at'>

/**
 * Of every unit and machine there is, a sentence for each thing that is not as it must be. Where somebody has set
 * the clock back, what was billed before lies at the same time as what is billed since.
 */
export async function findUnsettled(
  { db }: Pick<App, 'db'>,
  engine: Pick<FakeEngine, 'machines'>,
  { isClockSet = false } = {},
): Promise<string[]> {
  const units = await db.selectFrom('units').selectAll().orderBy('id').execute()
  const runs = await db.selectFrom('meters').selectAll().where('kind', '=', 'compute').orderBy('id').execute()
  const forks = await db.selectFrom('forks').select('id').where('ended_at', 'is', null).execute()
  const machines = new Map(engine.machines().map((machine) => [machine.id, machine]))
  const orphans = [...machines.keys()].filter((id) => !units.some((unit) => unit.id === id))
  return [
    ...units.flatMap((unit) => faultsOf(unit, machines.get(unit.id))),
    ...units.flatMap((unit) =>
      runFaults(
        unit,
        runs.filter((run) => run.unit_id === unit.id),
        isClockSet,
      ),
    ),
    ...orphans.map((id) => `${id}: a machine of no unit`),
    ...forks.map(({ id }) => `${id} has not ended`),
  ]
}

function faultsOf(unit: UnitRow, machine: MachineStatus | undefined): string[] {
  const { id, state, frozen, generation } = unit
  const fault = (what: string) => `${id} is ${state}: ${what}`
  const faults: string[] = []
  const isGone = state === 'destroyed' || state === 'error'
  if (unit.progress) faults.push(fault('its way is over and its progress still there'))
  if ((unit.destroys_at !== null) !== (state === 'error')) faults.push(fault('destroysAt is for error alone'))
  if (isGone && machine) faults.push(fault('its machine is still there'))
  if (isGone && unit.address !== null) faults.push(fault('it still has an address'))
  if (isGone) return faults

  const wanted = wantedOf({ state, frozen })
  if (wanted === null) return [...faults, fault('it has not arrived')]
  if (!machine) return [...faults, fault('its machine and disk are gone')]
  if (machine.address !== unit.address) faults.push(fault(`its machine has the address ${machine.address}`))
  const isThere = machine.state === 'running' ? (machine.frozen ? 'frozen' : 'running') : 'down'
  if (isThere !== wanted) faults.push(fault(`its machine is ${isThere}, and should be ${wanted}`))
  if (wanted !== 'down' && machine.generation !== generation) {
    faults.push(fault(`run ${machine.generation} is there, and it should be run ${generation}`))
  }
  return faults
}

/** What a machine should do, or null where the unit is only passing. */
function wantedOf({
  state,
  frozen,
}: Pick<UnitRow, 'state' | 'frozen'>): 'running' | 'frozen' | 'down' | null {
  switch (state) {
    case 'running':
      return 'running'
    case 'sleeping':
      return frozen ? 'frozen' : 'down'
    case 'stopped':
      return 'down'
    default:
      return null
  }
}

/** Runs in the order they were begun: closed but the last of a running unit, and one after the other. */
export function runFaults(
  { id, state }: Pick<UnitRow, 'id' | 'state'>,
  runs: RunRow[],
  isClockSet = false,
): string[] {
  const faults: string[] = []
  const open = runs.filter((run) => run.ended_at === null).length
  if (open !== (state === 'running' ? 1 : 0)) faults.push(`${id} is ${state} with ${open} open runs`)
  for (const [index, run] of runs.entries()) {
    const before = runs[index - 1]
    if (run.ended_at && run.ended_at < run.started_at) faults.push(`${id}: a run ends before it begins`)
    const overlaps = before?.ended_at && before.ended_at > run.started_at
    if (overlaps && !isClockSet) faults.push(`${id}: two runs overlap`)
  }
  return faults
}
