// The resource usage of a control group, as the kernel counts it, in both versions (cgroups.ts). It is read from
// outside: nothing of ours runs in the machine, and a frozen machine stays frozen.

import type { RunMetrics } from '../../metrics.ts'
import { type Cgroups, groupDirectory, tryRead } from './cgroups.ts'

type Device = { major: number; minor: number }
type GroupUsage = Pick<RunMetrics, 'cpu' | 'memory' | 'pids' | 'io'>

const NS_PER_MS = 1_000_000
const US_PER_MS = 1000

/** `device`: the one that the disks lie on; what is counted for others behind it is the same bytes again. */
export function readGroupUsage(cgroups: Cgroups, container: string, device: Device | null): GroupUsage {
  return cgroups.version === 2
    ? readUnified(cgroups, container, device)
    : readTrees(cgroups, container, device)
}

function readUnified(cgroups: Cgroups, container: string, device: Device | null): GroupUsage {
  const directory = groupDirectory(cgroups, cgroups.main, container)
  const read = (file: string) => tryRead(`${directory}/${file}`)
  const cpu = read('cpu.stat')
  const row = device && new RegExp(`^${nameOf(device)} (.*)$`, 'm').exec(read('io.stat'))?.[1]
  return {
    cpu: {
      usedMs: Math.round(field(cpu, 'usage_usec') / US_PER_MS),
      limitedMs: Math.round(field(cpu, 'throttled_usec') / US_PER_MS),
    },
    memory: memoryOf({
      heldBytes: Number(read('memory.current')),
      cacheBytes: field(read('memory.stat'), 'inactive_file'),
      // Linux 5.19 and newer have it.
      peakBytes: Number(read('memory.peak')),
      limitBytes: limitIn(read('memory.max')),
    }),
    pids: { count: Number(read('pids.current')), limit: limitIn(read('pids.max')) },
    // A group that has read and written nothing has no row.
    io: device && { readBytes: pair(row ?? '', 'rbytes'), writtenBytes: pair(row ?? '', 'wbytes') },
  }
}

function readTrees(cgroups: Cgroups, container: string, device: Device | null): GroupUsage {
  const read = (controller: string, file: string) => {
    const tree = cgroups.trees[controller]
    return tree === undefined ? '' : tryRead(`${groupDirectory(cgroups, tree, container)}/${file}`)
  }
  const io = read('blkio', 'blkio.throttle.io_service_bytes_recursive')
  const bytes = (direction: string) => (device ? field(io, `${nameOf(device)} ${direction}`) : 0)
  return {
    cpu: {
      usedMs: Math.round(Number(read('cpuacct', 'cpuacct.usage')) / NS_PER_MS),
      limitedMs: Math.round(field(read('cpu', 'cpu.stat'), 'throttled_time') / NS_PER_MS),
    },
    memory: memoryOf({
      heldBytes: Number(read('memory', 'memory.usage_in_bytes')),
      cacheBytes: field(read('memory', 'memory.stat'), 'total_inactive_file'),
      peakBytes: Number(read('memory', 'memory.max_usage_in_bytes')),
      limitBytes: limitIn(read('memory', 'memory.limit_in_bytes')),
    }),
    pids: { count: Number(read('pids', 'pids.current')), limit: limitIn(read('pids', 'pids.max')) },
    io: device && io !== '' ? { readBytes: bytes('Read'), writtenBytes: bytes('Write') } : null,
  }
}

/** The two counts are read one after the other, and may be of different instants. */
function memoryOf({
  heldBytes,
  cacheBytes,
  peakBytes,
  limitBytes,
}: {
  heldBytes: number
  cacheBytes: number
  peakBytes: number
  limitBytes: number
}): RunMetrics['memory'] {
  const cache = Math.min(cacheBytes, heldBytes)
  return { usedBytes: heldBytes - cache, cacheBytes: cache, peakBytes: peakBytes || null, limitBytes }
}

const nameOf = ({ major, minor }: Device) => `${major}:${minor}`

function field(text: string, name: string): number {
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
}

function pair(row: string, name: string): number {
  return Number(new RegExp(`\\b${name}=(\\d+)`).exec(row)?.[1] ?? 0)
}

/** `max` is none, which no machine's group has while its runtime has made it. */
function limitIn(text: string): number {
  const limit = Number(text)
  return Number.isSafeInteger(limit) ? limit : 0
}
