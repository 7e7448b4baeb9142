// What one create makes, whichever form asked for it: from a spec one unit, from a recipe one or several (spec 2.4).

import type { CreateFromSpec } from '../../../contract/create.ts'
import type { EndpointMode } from '../../../contract/endpoint.ts'
import type { UnitSpec } from '../../../contract/unit-spec.ts'
import type { StoredSpec } from '../../../store/unit-record.ts'
import { defaultPort } from '../../endpoints/choose.ts'

export type PlannedUnit = { spec: UnitSpec; databasePorts: StoredSpec['databasePorts'] }

export type PlannedUnits = {
  /** In the order in which they start: each waits until those before it are ready. */
  units: PlannedUnit[]
  /** Where the URL leads, where one is published. */
  frontDoor: { unit: string; port: number } | null
  /** Beside the secrets that the service generates, and the URL. */
  outputs: Record<string, string>
}

export type CreatePlan = {
  recipe: string | null
  /** What names begin with. */
  name: string
  /** The caller's own choice, which is taken or refused, and never changed to another. */
  isNamed: boolean
  stack: string | undefined
  expose: EndpointMode | undefined
  /** Pure: asked once to be judged by, and again when stack and name are certain. */
  make(at: { name: string; stackName: string }): PlannedUnits
}

export function planOfSpec({ spec, stack, expose }: CreateFromSpec): CreatePlan {
  const door = expose === undefined ? null : { unit: spec.name, port: defaultPort(spec) }
  return {
    recipe: null,
    name: spec.name,
    isNamed: true,
    stack,
    expose,
    make: () => ({ units: [{ spec, databasePorts: [] }], frontDoor: door, outputs: {} }),
  }
}
