// What the kernel says of the memory of a group (cgroups.ts).

import { type Cgroups, groupDirectory, tryRead } from './cgroups.ts'

/** Returns how often the kernel killed a process of the group for memory. Read it before the group is removed. */
export function countOomKills(cgroups: Cgroups, container: string): number {
  const file =
    cgroups.version === 2
      ? `${groupDirectory(cgroups, cgroups.main, container)}/memory.events`
      : `${groupDirectory(cgroups, cgroups.trees['memory'] ?? '', container)}/memory.oom_control`
  return Number(/^oom_kill (\d+)$/m.exec(tryRead(file))?.[1] ?? 0)
}

/** Each CPU may have charged up to 64 pages that it has not used yet, which the next refusal returns. */
const CHARGED_AHEAD_BYTES = 1024 * 1024

/** Whether the group has ever been at its own limit: otherwise the kernel killed for lack of the host's memory. */
export function hasMetMemoryLimit(cgroups: Cgroups, container: string): boolean {
  if (cgroups.version === 2) {
    const events = tryRead(`${groupDirectory(cgroups, cgroups.main, container)}/memory.events`)
    return Number(/^oom (\d+)$/m.exec(events)?.[1] ?? 0) > 0
  }
  const directory = groupDirectory(cgroups, cgroups.trees['memory'] ?? '', container)
  const read = (file: string) => Number(tryRead(`${directory}/${file}`))
  // `failcnt` stays 0 on Linux 6.18, whatever is refused.
  return ['memory', 'memory.memsw'].some((of) => {
    const [most, limit] = [read(`${of}.max_usage_in_bytes`), read(`${of}.limit_in_bytes`)]
    return limit > 0 && most >= limit - CHARGED_AHEAD_BYTES
  })
}

/** Returns the bytes that are only in memory: written by the processes, and in no file. */
export function memoryInUse(cgroups: Cgroups, container: string): number {
  const tree = cgroups.version === 2 ? cgroups.main : (cgroups.trees['memory'] ?? '')
  const text = tryRead(`${groupDirectory(cgroups, tree, container)}/memory.stat`)
  const names = cgroups.version === 2 ? ['anon', 'shmem'] : ['total_rss', 'total_shmem']
  return names
    .map((name) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0))
    .reduce((sum, bytes) => sum + bytes)
}

/** Returns the bytes that the processes have written to files and that are not on a disk yet. */
export function dirtyBytes(cgroups: Cgroups, container: string): number {
  const tree = cgroups.version === 2 ? cgroups.main : (cgroups.trees['memory'] ?? '')
  const text = tryRead(`${groupDirectory(cgroups, tree, container)}/memory.stat`)
  const counted = [...text.matchAll(/^(?:file|total)_(?:dirty|writeback) (\d+)$/gm)]
  return counted.reduce((sum, [, bytes]) => sum + Number(bytes), 0)
}
