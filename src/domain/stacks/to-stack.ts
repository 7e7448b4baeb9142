// A stack, as answers show it (spec 2.13).

import type { App } from '../../app.ts'
import type { Stack } from '../../contract/stack.ts'
import type { StackRecord } from '../../store/stacks.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { toUnit } from '../units/model/to-unit.ts'

export function toStack(app: App, { id, name, teamId, createdAt }: StackRecord, units: UnitRecord[]): Stack {
  const own = units.filter(({ stackId }) => stackId === id)
  return {
    id,
    name,
    teamId,
    createdAt: createdAt.toISOString(),
    units: own.map((unit) => toUnit(app, unit)),
  }
}
