// Every path the OCI engine uses, in one place (docs/engine-directories.md says who writes them). What must
// survive a reboot lies under the data directory, what must not under the run directory: the latter also
// holds every plain text of a secret, and is gone with the power.

import { join } from 'node:path'

export type Paths = ReturnType<typeof createPaths>
export type MachinePaths = ReturnType<Paths['machine']>
export type RunPaths = ReturnType<Paths['run']>

export function createPaths(options: { dataDir: string; runDir: string }) {
  const { dataDir, runDir } = options
  const pool = join(dataDir, 'pool')
  return {
    poolFile: join(dataDir, 'pool.btrfs'),
    pool,
    disks: join(pool, 'disks'),
    volumes: join(pool, 'volumes'),
    /** Of disks and volumes, while a backup is taken. */
    snapshots: join(pool, 'snapshots'),
    backupLock: join(dataDir, 'backup.lock'),
    machines: join(dataDir, 'machines'),
    /** Of machines that were put aside: what lay in `machines`. Their disks stay where they are. */
    aside: join(dataDir, 'aside'),
    asideOf: (id: string) => join(dataDir, 'aside', id),
    helper: join(dataDir, 'helper'),
    criu: join(dataDir, 'criu'),
    forks: join(dataDir, 'forks'),
    runs: join(runDir, 'runs'),
    exits: join(runDir, 'exits'),
    runtimeRoot: (name: string) => join(runDir, name),

    /** What a machine keeps for life. */
    machine: (id: string) => ({
      dir: join(dataDir, 'machines', id),
      record: join(dataDir, 'machines', id, 'machine.json'),
      logs: join(dataDir, 'machines', id, 'logs'),
      processes: join(dataDir, 'machines', id, 'processes'),
      process: (name: string) => join(dataDir, 'machines', id, 'processes', name),
      /** What it has in memory beyond its run: being written, whole, and taken by a start (images.ts). */
      memoryNext: join(dataDir, 'machines', id, 'memory.next'),
      memory: join(dataDir, 'machines', id, 'memory'),
      memoryUsed: join(dataDir, 'machines', id, 'memory.used'),
      disk: join(pool, 'disks', id),
      upper: join(pool, 'disks', id, 'upper'),
      work: join(pool, 'disks', id, 'work'),
      volume: join(pool, 'volumes', id),
    }),

    /** What one run of it needs; `container` names the run to the runtime. */
    run: (id: string, generation: number) => {
      const container = `${id}-${generation}`
      const dir = join(runDir, 'runs', container)
      return {
        container,
        dir,
        config: join(dir, 'config.json'),
        rootfs: join(dir, 'rootfs'),
        pid: join(dir, 'pid'),
        monitorPid: join(dir, 'monitor.pid'),
        control: join(dir, 'ctl'),
        execs: join(dir, 'execs'),
        forkGeneration: join(dir, 'fork-generation'),
        held: join(dir, 'held'),
        exit: join(runDir, 'exits', container),
      }
    },
  }
}
