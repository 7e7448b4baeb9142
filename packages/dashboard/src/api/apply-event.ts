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
      told.set(data.id, (count += 1))
      return show(team, data)
    case 'gone':
      told.set(data.id, (count += 1))
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
    case 'process':
      // Pages that show processes follow their output.
      return
    case 'money':
      cache.setQueryData<Money>(keys.money(team), (old) => old && { ...old, ...data })
  }
}

// When each unit was last told of, as a count of such events. An event that came during a call is at least as new as what
// follows it on the stream: an answer that was written before would take the page back to an older state.
const told = new Map<string, number>()
let count = 0

/** To be asked before a call whose answer is put. */
export const eventsSoFar = () => count

/** What the API answered about a unit, shown wherever the unit is, unless the stream has told of it since the call began. */
export function putUnit(team: string, unit: Contract.Unit, asOf: number): void {
  if (!isToldSince(unit.id, asOf)) show(team, unit)
}

export const isToldSince = (id: string, asOf: number) => (told.get(id) ?? 0) > asOf

/** The rules that a call has set: the rest of the unit is as it is shown, and newer rules stay. */
export function putEgress(team: string, id: string, egress: Contract.Unit['egress']): void {
  const unit = cache.getQueryData<Contract.Unit>(keys.unit(team, id))
  if (unit && egress.version > unit.egress.version) show(team, { ...unit, egress })
}

function show(team: string, unit: Contract.Unit): void {
  cache.setQueryData(keys.unit(team, unit.id), unit)
  cache.setQueryData<UnitRows>(
    keys.units(team),
    (old) => old && { ...old, units: replaced(old.units, unit, unit.state === 'destroyed') },
  )
}

function removeUnit(team: string, id: string): void {
  cache.setQueryData<Contract.Unit>(
    keys.unit(team, id),
    (old) => old && { ...old, state: 'destroyed', progress: null },
  )
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
