// The resource usage of a machine, from its control group, its disk and its network interface.

/** Of one run, since it began. The counters of a frozen run do not change. */
export type RunMetrics = {
  generation: number
  /** `limitedMs`: how long it was held back at the limit of its size. */
  cpu: { usedMs: number; limitedMs: number }
  /**
   * `usedBytes`: what the kernel cannot take back at once. `cacheBytes`: of files, which it can. `peakBytes`: the most
   * of both together; null where the kernel does not say.
   */
  memory: { usedBytes: number; cacheBytes: number; peakBytes: number | null; limitBytes: number }
  pids: { count: number; limit: number }
  /** Null while it has no network. */
  network: { receivedBytes: number; sentBytes: number } | null
  /** Of the disk's device. Null where the host does not count it. */
  io: { readBytes: number; writtenBytes: number } | null
}

/** `usedBytes` includes what is shared with the copies of a disk. Null if the host does not say. */
export type DiskMetrics = { usedBytes: number | null; limitBytes: number }

export type MachineMetrics = {
  at: Date
  /** Null while no machine runs. */
  run: RunMetrics | null
  disk: DiskMetrics
  volume: DiskMetrics | null
}
