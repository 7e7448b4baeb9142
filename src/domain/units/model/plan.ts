// The units of one create: one from a spec, or one or several from a recipe (spec 2.4).

import type { CreateFromSpec } from '../../../contract/create.ts'
import type { EndpointMode } from '../../../contract/endpoint.ts'
import type { UnitSpec } from '../../../contract/unit-spec.ts'
import type { StoredSpec } from '../../../store/unit-record.ts'
import { defaultPort } from '../../endpoints/choose.ts'

export type PlannedUnit = { spec: UnitSpec; databasePorts: StoredSpec['databasePorts'] }

export type PlannedUnits = {
  /** In the order in which they start: each waits until those before it are ready. */
  units: PlannedUnit[]
  /** The unit and port of the URL; null without one. */
  frontDoor: { unit: string; port: number } | null
  /** Outputs besides generated secrets and the URL. */
  outputs: Record<string, string>
}

export type CreatePlan = {
  recipe: string | null
  /** The first part of the units' names. */
  name: string
  /** Whether the caller chose the name: it is then used or refused, and never changed. */
  isNamed: boolean
  stack: string | undefined
  expose: EndpointMode | undefined
  /** Pure: called once to check the plan, and again when stack and name are known. */
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
