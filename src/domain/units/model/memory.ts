// Whether a unit's memory survives its sleep, predicted and observed. A frozen machine keeps it. A hibernated one
// keeps it if its class supports checkpoints and its processes can be checkpointed, which only an attempt shows
// (decision 37).

import type { App } from '../../../app.ts'
import type { Unit } from '../../../contract/unit.ts'
import type { Capabilities } from '../../../engine/engine.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'

/** Asks the engine, and remembers which classes keep memory. */
export async function learnCapabilities(app: App): Promise<Capabilities> {
  const capabilities = await app.engine.capabilities()
  const able = capabilities.classes.filter(({ memory }) => memory.available)
  app.keepsMemory = new Set(able.map((each) => each.class))
  return capabilities
}

export function showMemory(
  { keepsMemory }: Pick<App, 'keepsMemory'>,
  unit: Pick<UnitRecord, 'state' | 'frozen' | 'isolation' | 'memoryOutcome'>,
): Unit['memory'] {
  const canTry = keepsMemory.has(unit.isolation) && unit.memoryOutcome !== 'refused'
  return { kept: unit.state === 'sleeping' ? isKept(unit) : null, longSleep: canTry ? 'tried' : 'lost' }
}

function isKept({ frozen, memoryOutcome }: Pick<UnitRecord, 'frozen' | 'memoryOutcome'>): boolean | null {
  if (frozen) return true
  return memoryOutcome === null ? null : memoryOutcome === 'kept'
}
