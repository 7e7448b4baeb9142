// How many hosts there are to be, for what makes and removes machines by a metric (docs/kubernetes.md).

export type HostLoad = {
  memoryMb: number
  /** In use by units and all else, and promised to units that start. */
  usedMb: number
  /** Whether a start would begin at once. */
  hasRoom: boolean
}

/** More than this of all memory in use is too much for a burst of new units. */
const FILLED = 0.8

/** @param hosts Those that take new units. Returns one at least; null if none has said what it has. */
export function countHostsWanted(hosts: HostLoad[]): number | null {
  if (hosts.length === 0) return null
  const sum = (of: (host: HostLoad) => number) => hosts.reduce((total, host) => total + of(host), 0)
  const eachMb = sum(({ memoryMb }) => memoryMb) / hosts.length
  const byMemory = Math.ceil(sum(({ usedMb }) => usedMb) / (FILLED * eachMb))
  const byRoom = hosts.some(({ hasRoom }) => hasRoom) ? 1 : hosts.length + 1
  return Math.max(byMemory, byRoom, 1)
}
