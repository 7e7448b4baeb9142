// The filters of the list of units, kept in the URL.

import { type UnitState, unitStates } from '../../../../src/contract/states.ts'

export const sorts = ['name', 'state', 'cost', 'used', 'created'] as const
export type Sort = (typeof sorts)[number]

export const sortLabels = {
  created: 'Newest first',
  name: 'By name',
  state: 'By state',
  cost: 'By cost',
  used: 'Last used first',
} as const satisfies Record<Sort, string>

export const FILTER = 'Filter by name, image or stack'

export type UnitsSearch = { q?: string; state?: UnitState; stack?: string; sort?: Sort }

export function readUnitsSearch(search: Record<string, unknown>): UnitsSearch {
  const text = (name: string) => {
    const value = search[name]
    return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
  }
  const [q, stack] = [text('q'), text('stack')]
  const state = unitStates.find((each) => each === search['state'])
  const sort = sorts.find((each) => each === search['sort'])
  return {
    ...(q ? { q } : {}),
    ...(stack ? { stack } : {}),
    ...(state ? { state } : {}),
    ...(sort ? { sort } : {}),
  }
}
