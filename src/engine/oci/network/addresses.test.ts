import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createAddresses } from './addresses.ts'

const subnet = '10.9.0.0/16'
const open = (turn = 0) => createAddresses({ subnet, turn, onTurn: () => {} })

test('the network, gateway and broadcast addresses are never allotted', () => {
  const addresses = open()
  expect(addresses.allot()).toBe('10.9.0.2')
  for (const address of ['10.9.0.0', '10.9.0.1', '10.9.255.255']) expect(addresses.claim(address)).toBe(false)
})

test.each(['10.8.0.5', '10.9.0', '10.9.0.256', '10.9.0.5.1', '10.9.0.5/32', ' 10.9.0.5', '', 'x'])(
  '%o is not accepted as an address of the subnet',
  (text) => expect(open().claim(text)).toBe(false),
)

test('every free address is allotted before a freed one is reused', () => {
  const addresses = open()
  const first = addresses.allot()
  addresses.free(first)
  const others = new Set<string>()
  for (let n = 0; n < 0xffff - 3; n++) others.add(addresses.allot())
  expect(others.size).toBe(0xffff - 3)
  expect(others).not.toContain(first)
  expect(addresses.allot()).toBe(first)
})

test('allot throws host_full when no address is free', () => {
  const addresses = open()
  for (let n = 0; n < 0xffff - 2; n++) addresses.allot()
  expect(() => addresses.allot()).toThrow(expect.objectContaining({ kind: 'host_full' }))
  addresses.free('10.9.7.7')
  expect(addresses.allot()).toBe('10.9.7.7')
})

test('the next address continues where an earlier process left off', () => {
  let turn = 0
  const before = createAddresses({ subnet, turn, onTurn: (next) => (turn = next) })
  const given = [before.allot(), before.allot()]
  expect(given).not.toContain(open(turn).allot())
})

test('no address is allotted to two machines at once', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('allot' as const) }),
    fc.record({ kind: fc.constant('claim' as const), index: fc.integer({ min: 0, max: 40 }) }),
    fc.record({ kind: fc.constant('free' as const), index: fc.integer({ min: 0, max: 40 }) }),
  )
  let refused = 0
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const addresses = open()
      const held = new Set<string>()
      const take = (address: string) => {
        expect(held.has(address)).toBe(false)
        held.add(address)
      }
      for (const each of steps) {
        if (each.kind === 'allot') take(addresses.allot())
        else if (each.kind === 'claim') {
          if (addresses.claim(`10.9.0.${each.index}`)) take(`10.9.0.${each.index}`)
          else refused += 1
        } else {
          addresses.free(`10.9.0.${each.index}`)
          held.delete(`10.9.0.${each.index}`)
        }
      }
    }),
  )
  // Ensures that claims met held addresses, not only addresses outside the subnet.
  expect(refused).toBeGreaterThan(500)
})
