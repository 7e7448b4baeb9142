// The graph of a stack's units: an arrow where the environment of a unit has the address of another one, a dotted line
// where two units share a secret. Laid out in layers, by the longest way to a unit.

import type { Contract } from '@berth/sdk'

type Unit = Pick<Contract.Unit, 'id' | 'name' | 'env'>

export type Arrow = { from: string; to: string; label: string; kind: 'address' | 'secret' }

/** A stack forks at most this many; more boxes cannot be read. */
export const MAX_BOXES = 32
const MAX_ARROWS = 200

export function arrowsOf(units: readonly Unit[]): Arrow[] {
  const byName = new Map(units.map((unit) => [unit.name, unit]))
  const arrows = new Map<string, Arrow>()
  const add = (arrow: Arrow) => {
    const key = `${arrow.kind} ${arrow.from} ${arrow.to}`
    const known = arrows.get(key)
    if (known)
      known.label = known.label.includes(arrow.label) ? known.label : `${known.label}, ${arrow.label}`
    else if (arrows.size < MAX_ARROWS) arrows.set(key, arrow)
  }
  const owners = new Map<string, Unit>()
  for (const unit of units)
    for (const [name, value] of Object.entries(unit.env)) {
      if (typeof value === 'string') {
        for (const [, named = ''] of value.matchAll(/\{\{unit:([^{}]{1,64})\}\}/g)) {
          const to = byName.get(named)
          if (to && to !== unit) add({ from: unit.id, to: to.id, label: name, kind: 'address' })
        }
        continue
      }
      // A secret of the team, or one with hosts, is no tie between units.
      if ('teamSecret' in value || value.hosts !== undefined) continue
      const owner = owners.get(value.secret)
      if (owner === undefined) owners.set(value.secret, unit)
      else if (owner !== unit) add({ from: owner.id, to: unit.id, label: value.secret, kind: 'secret' })
    }
  return [...arrows.values()]
}

export type Box = { id: string; x: number; y: number }
export const box = { width: 176, height: 56, gapX: 112, gapY: 24 } as const

export function layOut(
  units: readonly Unit[],
  arrows: readonly Arrow[],
): { boxes: Box[]; width: number; height: number } {
  const layer = new Map(units.map(({ id }) => [id, 0]))
  const addresses = arrows.filter(({ kind }) => kind === 'address')
  // As many rounds as there are units: in a circle the layers would grow for ever.
  for (let round = 0; round < units.length; round++) {
    let isStable = true
    for (const { from, to } of addresses) {
      const least = Math.min((layer.get(from) ?? 0) + 1, units.length - 1)
      if ((layer.get(to) ?? 0) >= least) continue
      layer.set(to, least)
      isStable = false
    }
    if (isStable) break
  }
  const used = [...new Set(layer.values())].toSorted((one, other) => one - other)
  const rows = new Map<number, number>()
  const boxes = units.map(({ id }) => {
    const column = used.indexOf(layer.get(id) ?? 0)
    const row = rows.get(column) ?? 0
    rows.set(column, row + 1)
    return { id, x: column * (box.width + box.gapX), y: row * (box.height + box.gapY) }
  })
  const most = Math.max(1, ...rows.values())
  return {
    boxes,
    width: used.length * (box.width + box.gapX) - box.gapX,
    height: most * (box.height + box.gapY) - box.gapY,
  }
}
