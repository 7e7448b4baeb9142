// Opens and closes what the engine needs of its host: directories, the pool, control groups, images, the network.

import { EventEmitter } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock } from '../../lib/clock.ts'
import { type Failpoints, noFailpoints } from '../../lib/failpoints.ts'
import { createKeyedLock } from '../../lib/concurrency/keyed-lock.ts'
import type { Log } from '../../lib/log.ts'
import type { IsolationClass } from '../engine.ts'
import { CAPABILITIES } from './runtime/capabilities.ts'
import { hastenGracePeriods, leaveGracePeriods } from './kernel/grace-periods.ts'
import { openCgroups, removeParent } from './kernel/cgroups.ts'
import { atExpenseOf, prepareTeam } from './kernel/team-groups.ts'
import { clearStaleQgroups } from './storage/disks.ts'
import { prepareSharedForkGeneration } from './machine/fork-generation.ts'
import { TRUST } from './storage/trust.ts'
import { type EngineContext } from './machine/context.ts'
import { installMachinePrograms } from './machine-programs/install.ts'
import { openImages } from './images/images.ts'
import type { MaintenanceSettings } from './images/maintenance.ts'
import { namesOf } from './network/names.ts'
import { openNetwork } from './network/network.ts'
import type { EgressOptions } from './network/restricting.ts'
import { createPaths, type Paths } from './paths.ts'
import { leaveProcesses } from './processes/adopt.ts'
import { createPace } from './processes/pace.ts'
import { type PoolUsage } from './lifecycle/pool-watch.ts'
import { closePool, openPool, poolBytes, poolDevice, poolState } from './storage/pool.ts'
import type { BuildSettings } from './runsc-build/go.ts'
import { probeClasses } from './probes/probe.ts'
import { adoptMachines } from './lifecycle/recover.ts'
import { driverDefaults, type DriverOptions } from './runtime/driver.ts'
import { keepMonitor } from './runtime/kept-monitor.ts'
import { loadSeccomp } from './kernel/seccomp.ts'
import { raiseSharedCounters } from './kernel/shared-counters.ts'
import { becomeSubreaper } from './kernel/syscalls.ts'
import { noReadyMachines, openReadyMachines } from './warm-pool/pool.ts'
import type { ReadyOptions } from './machine/ready-machine.ts'

export type OciOptions = {
  instance: { id: string; subnet: string }
  dataDir: string
  imagesDir: string
  runDir: string
  isolation: 'auto' | IsolationClass
  /** Size of the disk pool when it is created; null takes most of the free space. */
  poolGb: number | null
  /** Whether the pool's file allocates all of its space at once, or as machines write. */
  poolSpace: PoolUsage
  reserveGb: number
  /** How long unknown machines are kept. Default: until the operator removes them. */
  asideKeptMs?: number | null
  /** How much of the pool, in percent, the machines of one team may use together. */
  teamDiskPercent: number
  /** Default: images are neither rebuilt nor removed automatically. */
  imageMaintenance?: MaintenanceSettings
  registryMirrors: Record<string, string>
  registryAuthFile: string | null
  /** The operator's proxy to the registries, for a host without direct access. */
  upstreamProxy: { host: string; port: number } | null
  /** Called with a line for a person: the first build of an image takes a while. */
  onProgress: (line: string) => void
  /** The port of the gateway's resolver on the gateway address; machines reach it as port 53. */
  resolverPort: number
  egress: EgressOptions
  log: Log
  clock: Clock
  /** Faults at the engine's effects, for tests (failpoints.ts). Default: none. */
  failpoints?: Failpoints
  /** Where the runtimes are, and the timeout of each call. */
  runtimes?: DriverOptions
  /** With what a current gVisor is built where the machine has none. Default, and null: none is built. */
  runscBuild?: BuildSettings | null
  /** Machines made ahead: how many of a kind, and the memory that must stay free. Default: none. */
  readyMachines?: ReadyOptions
}

const MAX_OPEN_FILES = 65_536

/** Makes the host ready for machines, and adopts those of an earlier engine. */
export async function openHost(options: OciOptions): Promise<EngineContext> {
  becomeSubreaper()
  const { instance, log, clock, failpoints = noFailpoints } = options
  const paths = createPaths(options)
  const low = raiseSharedCounters()
  if (low.length > 0) log.warn({ low }, 'counters that units share with the host could not be raised')
  await prepareDirectories(paths)
  if (!hastenGracePeriods(paths.gracePeriods)) log.info('grace periods of the kernel cannot be hastened')
  await openPool(paths, options.poolGb)
  const { drivers, capabilities } = await probeClasses(
    paths,
    instance.id,
    options.isolation,
    options.runtimes,
  )
  const cgroups = openCgroups(instance.id)
  const images = await openImages({
    ...options,
    chargeTo: (group) => {
      prepareTeam(cgroups, group)
      return atExpenseOf(cgroups, group)
    },
    instance: { id: instance.id, dataDir: options.dataDir },
    maintenance: options.imageMaintenance ?? null,
  })
  const network = await openNetwork({
    instance,
    dnsPort: options.resolverPort,
    egress: options.egress,
    stateDir: join(options.dataDir, 'network'),
    log,
  })
  const host: EngineContext = {
    instanceId: instance.id,
    paths,
    cgroups,
    network,
    images,
    drivers,
    programs: new Map(),
    driverOptions: options.runtimes ?? driverDefaults,
    monitor: await keepMonitor(paths.programs),
    capabilities,
    isolation: options.isolation,
    seccomp: loadSeccomp(CAPABILITIES),
    ioDevice: await poolDevice(paths),
    poolState: await poolState(paths),
    gatewayAddress: namesOf(instance).gateway,
    reserveGb: options.reserveGb,
    shareBytes: Math.floor(((await poolBytes(paths)) * options.teamDiskPercent) / 100),
    openFiles: openFilesLimit(),
    log,
    clock,
    machines: new Map(),
    damaged: new Set(),
    swept: 0,
    lock: createKeyedLock(),
    takingPace: createPace(clock),
    tellingPace: createPace(clock),
    ready: openReadyMachines(() => host, options.readyMachines ?? noReadyMachines),
    effect: (name, work) => failpoints.effect(name, work),
    events: new EventEmitter(),
  }
  host.events.setMaxListeners(0)
  await adoptMachines(host)
  return host
}

/** Leaves machines running. If there are none, removes everything of the instance from the host. */
export async function closeHost(host: EngineContext, watcher: { close(): void }): Promise<void> {
  watcher.close()
  await host.images.close({ isEmpty: await isEmpty(host) })
  await Promise.all([...host.machines.values()].map((machine) => machine.cleanup))
  leaveProcesses(host)
  const empty = host.machines.size === 0
  await host.network.close({ removeAll: empty })
  leaveGracePeriods(host.paths.gracePeriods)
  if (!empty) return
  await clearStaleQgroups(host.paths)
  await closePool(host.paths)
  await removeParent(host.cgroups)
}

async function isEmpty({ machines, damaged, paths }: EngineContext): Promise<boolean> {
  return machines.size === 0 && damaged.size === 0 && (await readdir(paths.aside)).length === 0
}

async function prepareDirectories(paths: Paths): Promise<void> {
  // The directory of all instances: the users of Berth's other processes must be able to pass through it.
  await mkdir(dirname(dirname(paths.runs)), { recursive: true, mode: 0o755 })
  for (const directory of [paths.machines, paths.aside, paths.forks, paths.runs, paths.exits]) {
    await mkdir(directory, { recursive: true, mode: 0o700 })
  }
  await installMachinePrograms(paths)
  await prepareSharedForkGeneration(paths)
  // A machine that trusts more has its own file mounted over it.
  await writeFile(join(paths.helper, TRUST), '', { mode: 0o444 })
}

/** Our hard limit: raising it needs a capability that an engine may not have. */
function openFilesLimit(): number {
  const row = /^Max open files\s+\S+\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))
  return Math.min(Number(row?.[1] ?? 1024), MAX_OPEN_FILES)
}
