import { expect, it } from 'vitest'
import { countHostsWanted, type HostLoad } from './hosts-wanted.ts'

const host = (usedMb: number, more: Partial<HostLoad> = {}): HostLoad => ({
  memoryMb: 10_000,
  usedMb,
  disk: { gb: 100, usedGb: 0 },
  waiting: 0,
  hasRoom: true,
  ...more,
})
const full = { disk: { gb: 100, usedGb: 90 } }

it.each([
  ['one host that is empty', [host(0)], 1],
  ['two hosts that are empty', [host(0), host(0)], 1],
  ['a host that is filled by more than four fifths', [host(8001)], 2],
  ['two hosts of which one could have what both have', [host(3000), host(4000)], 1],
  ['two hosts that are nearly full', [host(9000), host(9000)], 3],
  ['a host whose disks are nearly full, whatever its memory', [host(0, full)], 2],
  ['two hosts of which one has no disk left', [host(0, full), host(0)], 2],
  ['an older engine that says nothing of its disks', [host(0, { disk: null })], 1],
  ['a host without room, whatever its memory', [host(1000, { hasRoom: false })], 2],
  ['two hosts of which one has room', [host(1000, { hasRoom: false }), host(1000)], 1],
  ['a host where fifty starts wait', [host(1000, { hasRoom: false, waiting: 50 })], 4],
])('the number of hosts that are wanted is right for %s', (_what, hosts, wanted) => {
  expect(countHostsWanted(hosts)).toBe(wanted)
})

it('no number of hosts is wanted while none has said what memory it has', () => {
  expect(countHostsWanted([])).toBe(null)
})
