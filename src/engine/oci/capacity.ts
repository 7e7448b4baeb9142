// What this host has for machines, read anew each time: two small files of the kernel's.

import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import type { Capacity } from '../engine.ts'

export async function readCapacity(): Promise<Capacity> {
  const text = await readFile('/proc/meminfo', 'utf8')
  const mb = (field: string) =>
    Math.floor(Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) / 1024)
  return {
    cpus: availableParallelism(),
    memoryMb: mb('MemTotal'),
    availableMemoryMb: mb('MemAvailable'),
  }
}
