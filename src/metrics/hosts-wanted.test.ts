import { expect, it } from 'vitest'
import { countHostsWanted } from './hosts-wanted.ts'

const host = (usedMb: number, hasRoom = true) => ({ memoryMb: 10_000, usedMb, hasRoom })

it.each([
  ['one host that is empty', [host(0)], 1],
  ['two hosts that are empty', [host(0), host(0)], 1],
  ['a host that is filled by more than four fifths', [host(8001)], 2],
  ['two hosts of which one could have what both have', [host(3000), host(4000)], 1],
  ['two hosts that are nearly full', [host(9000), host(9000)], 3],
  ['a host whose starts wait, whatever its memory', [host(1000, false)], 2],
  ['two hosts of which one has room', [host(1000, false), host(1000)], 1],
])('the number of hosts that are wanted is right for %s', (_what, hosts, wanted) => {
  expect(countHostsWanted(hosts)).toBe(wanted)
})

it('no number of hosts is wanted while none has said what memory it has', () => {
  expect(countHostsWanted([])).toBe(null)
})
