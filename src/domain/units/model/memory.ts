// Whether a unit's memory survives its sleep, predicted and observed. A frozen machine keeps it. A hibernated one
// keeps it if its class supports checkpoints and its processes can be checkpointed, which only an attempt shows
// (decisions/memory.md).

import type { App } from '../../../app.ts'
import type { Unit } from '../../../contract/unit.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'

/** Whether its host keeps the memory of machines of its class, as the engine last said. */
export function keepsMemory(
  { capabilities }: Pick<App, 'capabilities'>,
  { hostId, isolation }: Pick<UnitRecord, 'hostId' | 'isolation'>,
): boolean {
  const classes = capabilities.get(hostId)?.classes ?? []
  return classes.some((each) => each.class === isolation && each.memory.available)
}

export function showMemory(
  app: Pick<App, 'capabilities'>,
  unit: Pick<UnitRecord, 'hostId' | 'state' | 'frozen' | 'isolation' | 'memoryOutcome'>,
): Unit['memory'] {
  const canTry = unit.memoryOutcome !== 'refused' && keepsMemory(app, unit)
  return { kept: unit.state === 'sleeping' ? isKept(unit) : null, longSleep: canTry ? 'tried' : 'lost' }
}

function isKept({ frozen, memoryOutcome }: Pick<UnitRecord, 'frozen' | 'memoryOutcome'>): boolean | null {
  if (frozen) return true
  return memoryOutcome === null ? null : memoryOutcome === 'kept'
}
