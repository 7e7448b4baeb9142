// What this host has for machines, read anew each time: small files of the kernel's.

import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import type { Capacity } from '../../engine.ts'
import type { EngineContext } from '../context.ts'

const MB = 1024 * 1024
const GB = 1024 * MB
/** Larger ones make the host's share look smaller than it is, which is safe. */
const PAGE_BYTES = 4096

export async function readCapacity({ shareBytes }: Pick<EngineContext, 'shareBytes'>): Promise<Capacity> {
  const text = await readFile('/proc/meminfo', 'utf8')
  const mb = (field: string) =>
    Math.floor(Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) / 1024)
  return {
    cpus: availableParallelism(),
    memoryMb: mb('MemTotal'),
    availableMemoryMb: mb('MemAvailable'),
    teamDiskGb: Math.floor(shareBytes / GB),
  }
}

/**
 * How much the buffers of a machine's sockets may hold: a quarter of its memory, and of what all of the host's may hold
 * before its kernel begins to save on them.
 */
export function socketBufferBytes(memoryMb: number): number {
  const [, pressurePages = ''] = readFileSync('/proc/sys/net/ipv4/tcp_mem', 'utf8').split(/\s+/)
  return Math.floor(Math.min(memoryMb * MB, Number(pressurePages) * PAGE_BYTES) / 4)
}
