// How many hosts there are to be, for what makes and removes machines by a metric (docs/kubernetes.md).

export type HostLoad = {
  memoryMb: number
  /** In use by units and all else, and promised to units that start. */
  usedMb: number
  /** Null: its engine is of an earlier Berth, which does not say. */
  disk: { gb: number; usedGb: number } | null
  /** Starts that wait there for memory or their turn. */
  waiting: number
  /** Whether a start would begin at once. */
  hasRoom: boolean
}

/** More than this of all memory or disk in use is too much for a burst of new units. */
const FILLED = 0.8
/** Of a start that waits. A unit may take its whole size, and most take far less. */
const WAITING_MB = 512

/** @param hosts Those that take new units. Returns one at least; null if none has said what it has. */
export function countHostsWanted(hosts: HostLoad[]): number | null {
  if (hosts.length === 0) return null
  const disks = hosts.flatMap(({ disk }) => disk ?? [])
  const byMemory = hosts.map(({ memoryMb, usedMb, waiting }) => ({
    has: memoryMb,
    takes: usedMb + waiting * WAITING_MB,
  }))
  const byDisk = disks.map(({ gb, usedGb }) => ({ has: gb, takes: usedGb }))
  const byRoom = hosts.some(({ hasRoom }) => hasRoom) ? 1 : hosts.length + 1
  return Math.max(countFor(byMemory), countFor(byDisk), byRoom)
}

/** So many of their average size that what all take together leaves a fifth. */
function countFor(hosts: { has: number; takes: number }[]): number {
  const has = hosts.reduce((sum, host) => sum + host.has, 0)
  const takes = hosts.reduce((sum, host) => sum + host.takes, 0)
  return has === 0 ? 1 : Math.max(1, Math.ceil((takes * hosts.length) / (FILLED * has)))
}
