// A group of processes that may use a part of a core: so that on a small machine a gateway is what a benchmark waits for, and
// not its client or origin. Needs root.

import { existsSync } from 'node:fs'
import { mkdir, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const PERIOD_US = 10_000

export type CpuQuota = { add(pid: number): Promise<void>; remove(): Promise<void> }

/** `percent`: of one core. Remove it when its processes have ended. */
export async function createCpuQuota(name: string, percent: number): Promise<CpuQuota> {
  const isFirstVersion = existsSync('/sys/fs/cgroup/cpu')
  const root = isFirstVersion ? '/sys/fs/cgroup/cpu' : '/sys/fs/cgroup'
  const group = join(root, `berth-bench-${process.pid}-${name}`)
  const quotaUs = Math.round((percent / 100) * PERIOD_US)
  if (!isFirstVersion) await writeFile(join(root, 'cgroup.subtree_control'), '+cpu')
  await mkdir(group)
  if (isFirstVersion) {
    await writeFile(join(group, 'cpu.cfs_period_us'), `${PERIOD_US}`)
    await writeFile(join(group, 'cpu.cfs_quota_us'), `${quotaUs}`)
  } else await writeFile(join(group, 'cpu.max'), `${quotaUs} ${PERIOD_US}`)
  return {
    add: async (pid) => await writeFile(join(group, 'cgroup.procs'), `${pid}`),
    remove: async () => await rmdir(group),
  }
}
