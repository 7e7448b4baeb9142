// Selects the rows to show: filters and sorts all units.

import type { Contract } from '@berth/sdk'
import { unitStates } from '../../../../src/contract/states.ts'
import type { Sort, UnitsSearch } from './search.ts'

type Unit = Contract.Unit

export function selectUnits(units: Unit[], { q = '', state, stack, sort = 'created' }: UnitsSearch): Unit[] {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean)
  const shown = units.filter((unit) => {
    if (state !== undefined && unit.state !== state) return false
    if (stack !== undefined && unit.stackId !== stack) return false
    const text = `${unit.name} ${unit.image} ${unit.internalHost} ${unit.id}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
  return shown.sort(orders[sort])
}

const later = (one: string | null, other: string | null) => (other ?? '').localeCompare(one ?? '')

const orders = {
  name: (one, other) => one.name.localeCompare(other.name),
  state: (one, other) => unitStates.indexOf(one.state) - unitStates.indexOf(other.state),
  cost: (one, other) => other.costCentsSoFar - one.costCentsSoFar,
  used: (one, other) => later(one.lastUsedAt, other.lastUsedAt),
  created: (one, other) => later(one.createdAt, other.createdAt),
} as const satisfies Record<Sort, (one: Unit, other: Unit) => number>

/** The name of the stack is in the unit's host name: NAME.STACK.internal. */
export function stackOf({ internalHost }: Pick<Unit, 'internalHost'>): string {
  return internalHost.split('.').at(1) ?? ''
}
