// The host's capacity for machines, read again at each call from small kernel files.

import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { availableParallelism, totalmem } from 'node:os'
import type { Capacity, ReadyMachinesStatus } from '../../engine.ts'
import type { Clock } from '../../../lib/clock.ts'
import { VERSION } from '../../../lib/version.ts'

const MB = 1024 * 1024
const GB = 1024 * MB
/** A larger page size makes the host's share look smaller than it is, which is safe. */
const PAGE_BYTES = 4096

export async function readCapacity({
  shareBytes,
  disk,
  ready,
  instanceId,
  subnet,
  clock,
}: {
  shareBytes: number
  disk: NonNullable<Capacity['disk']>
  ready: { stats(): ReadyMachinesStatus }
  instanceId: string
  subnet: string
  clock: Clock
}): Promise<Capacity> {
  const text = await readFile('/proc/meminfo', 'utf8')
  const readyMachines = ready.stats()
  const mb = (field: string) =>
    Math.floor(Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) / 1024)
  return {
    cpus: availableParallelism(),
    memoryMb: mb('MemTotal'),
    // Machines made ahead go first when a start needs what they have.
    availableMemoryMb: mb('MemAvailable') + readyMachines.memoryMb,
    teamDiskGb: Math.floor(shareBytes / GB),
    disk,
    readyMachines,
    host: { instance: instanceId, boot: clock.boot, nowMs: clock.now().getTime(), subnet, version: VERSION },
  }
}

export function availableMemoryMb(): number {
  const text = readFileSync('/proc/meminfo', 'utf8')
  return Math.floor(Number(/^MemAvailable:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) / 1024)
}

/**
 * The limit of a machine's socket buffers: a quarter of its memory, and a quarter of what all sockets of the host may
 * use before the kernel comes under pressure.
 */
export function socketBufferBytes(memoryMb: number): number {
  return Math.floor(Math.min(memoryMb * MB, socketPressureBytes()) / 4)
}

/** A network namespace does not show it: there, what the kernel sets by default, a sixteenth of the memory. */
function socketPressureBytes(): number {
  try {
    const [, pages = ''] = readFileSync('/proc/sys/net/ipv4/tcp_mem', 'utf8').split(/\s+/)
    return Number(pages) * PAGE_BYTES
  } catch {
    return totalmem() / 16
  }
}
