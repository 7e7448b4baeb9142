import { describe, expect, test } from 'vitest'
import type { MachineEgress } from '../../egress.ts'
import { allowsDirect, elementsOf, PINS_PER_MACHINE, pinsFor, pinsWithin, withPins } from './restrictions.ts'

const listed = (...allow: string[]): MachineEgress => ({
  mode: 'listed',
  allow,
  siblings: 'team',
  stack: null,
  secrets: [],
})
const one = '203.0.113.1'

describe('the elements of a machine', () => {
  test('are none where nothing is restricted', () => {
    const egress: MachineEgress = { mode: 'open', allow: [], siblings: 'team', stack: null, secrets: [] }
    expect(elementsOf('10.9.0.2', { egress, stack: null, pins: [] })).toEqual([])
  })

  test('name each range once, in the set of its prefix', () => {
    const egress = listed('203.0.113.0/25:22', '203.0.113.0/24:22', '203.0.113.0/24:22', '203.0.113.9/32:25')
    const ranges = elementsOf('10.9.0.2', { egress, stack: null, pins: [] }).filter(({ set }) =>
      set.startsWith('ranges'),
    )
    expect(ranges).toEqual([
      { set: 'ranges25', element: '10.9.0.2 . 203.0.113.0 . 22' },
      { set: 'ranges24', element: '10.9.0.2 . 203.0.113.0 . 22' },
      { set: 'ranges32', element: '10.9.0.2 . 203.0.113.9 . 25' },
    ])
  })

  test('name whole ranges and what is denied in sets of their own', () => {
    const egress = { ...listed('203.0.113.0/24'), deny: ['203.0.113.8/29'] }
    const elements = elementsOf('10.9.0.2', { egress, stack: null, pins: [] })
    expect(elements.filter(({ set }) => /^(networks|denied)/.test(set))).toEqual([
      { set: 'networks24', element: '10.9.0.2 . 203.0.113.0' },
      { set: 'denied29', element: '10.9.0.2 . 203.0.113.8' },
    ])
  })
})

describe('pins', () => {
  const egress = listed('git.example.com:22', 'a.example.com')

  test('are for ports at which no connection says its name', () => {
    expect(pinsFor('git.example.com', [one], egress)).toEqual([
      { name: 'git.example.com', address: one, port: 22 },
    ])
    expect(pinsFor('a.example.com', [one], egress)).toEqual([])
    expect(pinsFor('b.example.com', [one], egress)).toEqual([])
  })

  test('go when the rules do not name them any more, and when their name is unknown', () => {
    const pins = [...pinsFor('git.example.com', [one], egress), { name: null, address: one, port: 23 }]
    expect(pinsWithin(pins, egress)).toEqual(pins.slice(0, 1))
    expect(pinsWithin(pins, listed('a.example.com'))).toEqual([])
  })

  test('are bounded, and the oldest go', () => {
    const many = Array.from({ length: PINS_PER_MACHINE + 5 }, (_, at) => ({
      name: 'x.example.com',
      address: one,
      port: at,
    }))
    const kept = many.reduce<typeof many>((pins, pin) => withPins(pins, [pin]) as typeof many, [])
    expect([kept.length, kept.at(-1)?.port]).toEqual([PINS_PER_MACHINE, PINS_PER_MACHINE + 4])
  })

  test('pins and ranges allow TCP alone', () => {
    const restriction = {
      egress: listed('198.51.100.0/24:22'),
      pins: [{ name: null, address: one, port: 25 }],
    }
    const allows = (protocol: string, address: string, port: number) =>
      allowsDirect(restriction, { protocol, address, port })
    expect(allows('tcp', one, 25)).toBe(true)
    expect(allows('tcp', '198.51.100.7', 22)).toBe(true)
    expect(allows('udp', '198.51.100.7', 22)).toBe(false)
    expect(allows('tcp', one, 443)).toBe(false)
  })

  test('are made for the host of a secret where a range could lead past the process that puts it in', () => {
    const secrets = [{ name: 'KEY', placeholder: 'p', value: 'v', hosts: ['a.example.com'] }]
    const pin = { name: 'a.example.com', address: one, port: 443 }
    expect(pinsFor('a.example.com', [one], { ...listed('a.example.com'), secrets })).toEqual([])
    const ranged = { ...listed('a.example.com', '203.0.113.0/24'), secrets }
    expect(pinsFor('a.example.com', [one], ranged)).toEqual([pin])
    const elements = elementsOf('10.9.0.2', { egress: ranged, stack: null, pins: [pin] })
    expect(elements.filter(({ set }) => /^(pinned|brokered)$/.test(set))).toEqual([
      { set: 'brokered', element: `10.9.0.2 . ${one}` },
    ])
  })
})
