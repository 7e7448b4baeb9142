// Applies one event of the stream to the cache.

import type { Contract, TeamEvent } from '@berth/sdk'
import { cache, keys, type Money, type UnitRows } from './cache.ts'

export type LiveEvent = TeamEvent

/** Everything of the team that is shown is read again. */
export function readAnew(team: string): void {
  void cache.invalidateQueries({ queryKey: [team] })
}

export function applyEvent(team: string, { event, data }: LiveEvent): void {
  switch (event) {
    case 'reset':
      return readAnew(team)
    case 'unit':
      return putUnit(team, data)
    case 'gone':
      return removeUnit(team, data.id)
    case 'agent':
      cache.setQueryData<Contract.AgentList>(
        keys.agents(team),
        (old) => old && { ...old, agents: replaced(old.agents, data) },
      )
      return
    case 'stack':
      void cache.invalidateQueries({ queryKey: keys.stacks(team) })
      return
    case 'team':
      void cache.invalidateQueries({ queryKey: keys.members(team) })
      void cache.invalidateQueries({ queryKey: keys.me })
      return
    case 'host':
      // Its units say by themselves what becomes of them.
      return
    case 'money':
      cache.setQueryData<Money>(keys.money(team), (old) => old && { ...old, ...data })
  }
}

/** What the API answered about a unit, shown wherever the unit is. */
export function putUnit(team: string, unit: Contract.Unit): void {
  cache.setQueryData(keys.unit(team, unit.id), unit)
  cache.setQueryData<UnitRows>(
    keys.units(team),
    (old) => old && { ...old, units: replaced(old.units, unit, unit.state === 'destroyed') },
  )
}

function removeUnit(team: string, id: string): void {
  cache.setQueryData<Contract.Unit>(keys.unit(team, id), (old) => old && { ...old, state: 'destroyed' })
  cache.setQueryData<UnitRows>(
    keys.units(team),
    (old) => old && { ...old, units: old.units.filter((unit) => unit.id !== id) },
  )
  void cache.invalidateQueries({ queryKey: keys.stacks(team) })
}

function replaced<T extends { id: string }>(list: T[], item: T, isGone = false): T[] {
  if (isGone) return list.filter(({ id }) => id !== item.id)
  const at = list.findIndex(({ id }) => id === item.id)
  return at < 0 ? [item, ...list] : list.with(at, item)
}
