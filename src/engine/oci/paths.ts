// Every path that the OCI engine uses (docs/engine-directories.md says who writes them). Files that must survive a
// reboot are below the data directory, others below the run directory, which also holds every plain text of a secret
// and is lost with the power.

import { join } from 'node:path'

export type Paths = ReturnType<typeof createPaths>
export type MachinePaths = ReturnType<Paths['machine']>
export type RunPaths = ReturnType<Paths['run']>

export function createPaths(options: { dataDir: string; runDir: string }) {
  const { dataDir, runDir } = options
  const pool = join(dataDir, 'pool')
  const containers = new Map<string, string>()
  return {
    poolFile: join(dataDir, 'pool.btrfs'),
    pool,
    disks: join(pool, 'disks'),
    volumes: join(pool, 'volumes'),
    /** Snapshots of disks and volumes, while a backup is taken. */
    snapshots: join(pool, 'snapshots'),
    backupLock: join(dataDir, 'backup.lock'),
    machines: join(dataDir, 'machines'),
    /** Machines that were put aside: their directories from `machines`. Their disks stay where they are. */
    aside: join(dataDir, 'aside'),
    asideOf: (id: string) => join(dataDir, 'aside', id),
    helper: join(dataDir, 'helper'),
    criu: join(dataDir, 'criu'),
    forks: join(dataDir, 'forks'),
    runs: join(runDir, 'runs'),
    exits: join(runDir, 'exits'),
    /** The secrets that are put into the requests of machines. */
    secrets: join(runDir, 'secrets'),
    secretsOf: (id: string) => join(runDir, 'secrets', id),
    /** Says that the engine has set what it is named after (kernel/grace-periods.ts). */
    gracePeriods: join(runDir, 'grace-periods'),
    /** Programs that runs were started with (runtime/kept-programs.ts). */
    programs: join(dataDir, 'programs'),
    runtimeRoot: (name: string) => join(runDir, name),

    /** What a machine keeps for life. */
    machine: (id: string) => ({
      dir: join(dataDir, 'machines', id),
      record: join(dataDir, 'machines', id, 'machine.json'),
      logs: join(dataDir, 'machines', id, 'logs'),
      processes: join(dataDir, 'machines', id, 'processes'),
      process: (name: string) => join(dataDir, 'machines', id, 'processes', name),
      /** Its checkpoint: being written, complete, and consumed by a start (images.ts). */
      memoryNext: join(dataDir, 'machines', id, 'memory.next'),
      memory: join(dataDir, 'machines', id, 'memory'),
      memoryUsed: join(dataDir, 'machines', id, 'memory.used'),
      disk: join(pool, 'disks', id),
      upper: join(pool, 'disks', id, 'upper'),
      work: join(pool, 'disks', id, 'work'),
      volume: join(pool, 'volumes', id),
    }),

    /** Runs that began under another name than their machine's (warm-pool): `ID-GENERATION` → the container. */
    containers,

    /** What one run of it needs; `container` is the runtime's name of the run. */
    run: (id: string, generation: number) => {
      const name = `${id}-${generation}`
      const container = containers.get(name) ?? name
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
        /** What the machine trusts, if it has secrets. */
        trust: join(dir, 'trust.pem'),
        held: join(dir, 'held'),
        /** That it goes on, and under which monitor (records/record.ts). */
        running: join(dir, 'running'),
        /** Of a machine that was made ahead: what it is told to run, and a link to the logs of its machine. */
        orders: join(dir, 'orders'),
        logs: join(dir, 'logs'),
        exit: join(runDir, 'exits', container),
      }
    },
  }
}

/** Of machines that were made ahead: no id of another begins so. */
const READY_PREFIX = 'ready-'

export function readyName(suffix: string): string {
  return `${READY_PREFIX}${suffix}`
}

export function isReadyName(id: string): boolean {
  return id.startsWith(READY_PREFIX)
}
