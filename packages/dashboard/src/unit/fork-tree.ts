// Builds the tree of forks from the list of units.

import type { Contract } from '@berth/sdk'

type Unit = Contract.Unit

/** The copies of each unit, oldest first. */
export function childrenOf(units: readonly Unit[]): ReadonlyMap<string, Unit[]> {
  const children = new Map<string, Unit[]>()
  for (const unit of units.toSorted((one, other) => one.createdAt.localeCompare(other.createdAt)))
    if (unit.forkedFrom !== null)
      children.set(unit.forkedFrom, [...(children.get(unit.forkedFrom) ?? []), unit])
  return children
}

/** The first of its line that is still there. */
export function rootOf(unit: Unit, units: readonly Unit[]): Unit {
  const byId = new Map(units.map((each) => [each.id, each]))
  let root = byId.get(unit.id) ?? unit
  for (;;) {
    const parent = root.forkedFrom === null ? undefined : byId.get(root.forkedFrom)
    if (parent === undefined) return root
    root = parent
  }
}
