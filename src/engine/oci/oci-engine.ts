// The engine of this host: it runs OCI runtimes directly, without a daemon. Each operation has its file; this one
// builds the host's parts and passes each call to its operation.

import { EventEmitter } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock } from '../../lib/clock.ts'
import { type Failpoints, noFailpoints } from '../../lib/failpoints.ts'
import { createKeyedLock } from '../../lib/concurrency/keyed-lock.ts'
import type { Log } from '../../lib/log.ts'
import type { Engine, IsolationClass, MachineStatus } from '../engine.ts'
import { putAside, startRemovingAside } from './lifecycle/aside.ts'
import { CAPABILITIES } from './runtime/capabilities.ts'
import { readCapacity } from './kernel/capacity.ts'
import { hastenGracePeriods, leaveGracePeriods } from './kernel/grace-periods.ts'
import { openCgroups, removeParent } from './kernel/cgroups.ts'
import { atExpenseOf, prepareTeam } from './kernel/team-groups.ts'
import { watchTeamWeights } from './kernel/team-weights.ts'
import { createMachine } from './lifecycle/create.ts'
import { clearStaleQgroups } from './storage/disks.ts'
import { readArchiveInMachine, writeArchiveInMachine } from './exec/archives.ts'
import { listDirectoryInMachine, removeFileInMachine, statInMachine } from './exec/directories.ts'
import { makeDirectoryInMachine, moveFileInMachine } from './exec/places.ts'
import { asUser } from './exec/as-user.ts'
import { execInMachine } from './exec/exec.ts'
import { listTasks, signalTask } from './exec/tasks.ts'
import { terminalInMachine } from './exec/terminal.ts'
import { watchRuns } from './lifecycle/exits.ts'
import {
  readFileInMachine,
  receiveFileInMachine,
  sendFileOfMachine,
  writeFileInMachine,
} from './exec/files.ts'
import { forkMachines } from './snapshot/fork.ts'
import { prepareSharedForkGeneration } from './machine/fork-generation.ts'
import { TRUST } from './storage/trust.ts'
import { freezeMachine, thawMachine } from './lifecycle/freeze.ts'
import { restrictMachine } from './egress.ts'
import { getMachine, statusOf, type EngineContext } from './machine/context.ts'
import { installMachinePrograms } from './machine-programs.ts'
import { openImages } from './images/images.ts'
import type { MaintenanceSettings } from './images/maintenance.ts'
import { followLogs, readLogs } from './logs/logs.ts'
import { namesOf } from './network/names.ts'
import { openNetwork } from './network/network.ts'
import type { EgressOptions } from './network/restricting.ts'
import { createPaths, type Paths } from './paths.ts'
import { leaveProcesses } from './processes/adopt.ts'
import { createPace } from './processes/pace.ts'
import {
  followProcess,
  forgetProcess,
  keepProcessAwake,
  listProcesses,
  readProcess,
  signalProcess,
} from './processes/processes.ts'
import { writeProcess } from './processes/input.ts'
import { startProcess } from './processes/start.ts'
import { type PoolUsage, watchPool } from './lifecycle/pool-watch.ts'
import { closePool, openPool, poolBytes, poolDevice, poolState, refuseUnwritable } from './storage/pool.ts'
import type { BuildSettings } from './runsc-build/go.ts'
import { buildForNewRuns } from './lifecycle/build-for-new-runs.ts'
import { probeClasses } from './probes/probe.ts'
import { readMetrics } from './lifecycle/metrics.ts'
import { adoptMachines, recoverMachines } from './lifecycle/recover.ts'
import { driverDefaults, type DriverOptions } from './runtime/driver.ts'
import { loadSeccomp } from './kernel/seccomp.ts'
import { raiseSharedCounters } from './kernel/shared-counters.ts'
import { startMachine } from './lifecycle/start.ts'
import { destroyMachine, stopMachine } from './lifecycle/stop.ts'
import { suspendMachine } from './lifecycle/suspend.ts'
import { becomeSubreaper } from './kernel/syscalls.ts'
import { watchTraffic } from './traffic.ts'
import { noReadyMachines, openReadyMachines } from './warm-pool/pool.ts'
import type { ReadyOptions } from './machine/ready-machine.ts'
import { watchFilesInMachine } from './watcher/watching.ts'

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

export type OciEngine = Engine & {
  /** Leaves machines running. If there are none, removes everything of the instance from the host. */
  close(): Promise<void>
}

const MAX_OPEN_FILES = 65_536

export async function openOciEngine(options: OciOptions): Promise<OciEngine> {
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
  const logTurns = createKeyedLock()
  const watcher = watchRuns(host)
  const removing = startRemovingAside(host, options.asideKeptMs ?? null)
  const pool = watchPool(host, options.poolSpace)
  const weights = watchTeamWeights(host, () =>
    [...host.machines.values()].map(({ record }) => record.spec.networkGroup),
  )
  host.ready.begin()
  const building = options.runscBuild ? buildForNewRuns(host, options.runscBuild, options.onProgress) : null

  return {
    capabilities: async () => host.capabilities,
    capacity: async () => {
      refuseUnwritable(paths)
      return await readCapacity({ ...host, subnet: instance.subnet })
    },
    renew: async () => null,
    pull: (reference, waiter) => images.pull(reference, waiter),
    create: (machine) => createMachine(host, machine),
    start: (ref, run) => startMachine(host, ref, run),
    stop: (ref, graceMs) => stopMachine(host, ref, graceMs),
    suspend: (ref, graceMs) => suspendMachine(host, ref, graceMs),
    fork: (forks) => forkMachines(host, forks),
    freeze: (ref) => freezeMachine(host, ref),
    thaw: (ref) => thawMachine(host, ref),
    destroy: async (id) => {
      images.giveUp(id)
      await destroyMachine(host, id)
    },
    restrict: (ref, egress) => restrictMachine(host, ref, egress),
    putAside: (id) => putAside(host, id, 'unknown'),
    metrics: (id) => readMetrics(host, id),
    list: async () => [...host.machines.values()].map(statusOf),
    exec: async (ref, request, onOutput, signal) =>
      await execInMachine(host, ref, await asUser(host, ref, request), onOutput, signal),
    terminal: (ref, request, input, onOutput, signal, onBegun) =>
      terminalInMachine(host, ref, request, input, onOutput, signal, onBegun),
    tasks: (ref) => listTasks(host, ref),
    signalTask: (ref, pid, signal) => signalTask(host, ref, pid, signal),
    startProcess: (ref, request) => startProcess(host, ref, request),
    processes: async (id) => listProcesses(host, id),
    processOutput: (id, process, after, maxBytes) => readProcess(host, id, process, after, maxBytes),
    followProcess: (id, process, after, signal) => followProcess(host, id, process, after, signal),
    signalProcess: (ref, process, signal) => signalProcess(host, ref, process, signal),
    writeProcess: (ref, process, data, end) => writeProcess(host, ref, process, data, end),
    keepProcessAwake: (id, process, until) => keepProcessAwake(host, id, process, until),
    forgetProcess: (id, process) => forgetProcess(host, id, process),
    writeFile: (ref, path, content, owner) => writeFileInMachine(host, ref, path, content, owner),
    receiveFile: (ref, path, pieces, owner, signal) =>
      receiveFileInMachine(host, ref, path, pieces, owner, signal),
    readFile: (ref, path, maxBytes, user) => readFileInMachine(host, ref, path, maxBytes, user),
    sendFile: (ref, path, onMode, onData, signal, user) =>
      sendFileOfMachine(host, ref, path, onMode, onData, signal, user),
    statFile: (ref, path, user) => statInMachine(host, ref, path, user),
    makeDirectory: (ref, path, owner) => makeDirectoryInMachine(host, ref, path, owner),
    moveFile: (ref, from, to, user) => moveFileInMachine(host, ref, from, to, user),
    listDirectory: (ref, path, depth, user) => listDirectoryInMachine(host, ref, path, depth, user),
    removeFile: (ref, path, recursive) => removeFileInMachine(host, ref, path, recursive),
    watchFiles: (ref, path, recursive, told, signal) =>
      watchFilesInMachine(host, ref, path, recursive, told, signal),
    readArchive: (ref, path, onData, signal, user) =>
      readArchiveInMachine(host, ref, path, onData, signal, user),
    writeArchive: (ref, path, pieces, signal, keep) =>
      writeArchiveInMachine(host, ref, path, pieces, signal, keep),
    logs: async (id, query) => {
      // One at a time per team: however many reads one team makes, another waits for at most one of them.
      const { networkGroup } = getMachine(host, id).record.spec
      return await logTurns(`${networkGroup}`, () => readLogs(host, id, query))
    },
    followLogs: (id, after, signal) => {
      getMachine(host, id)
      return followLogs(host, id, after, signal)
    },
    watchExits: (onExit, signal) => watchExits(host, onExit, signal),
    watchProcesses: async (onEnd, signal) => {
      host.events.on('processEnded', onEnd)
      await untilAborted(signal)
      host.events.off('processEnded', onEnd)
    },
    watchTraffic: (onTraffic, signal) => watchTraffic(host, onTraffic, signal),
    watchEgress: (onSeen, signal) => network.watchSeen(onSeen, signal),
    watchPulls: (onPulls, signal) => images.watchPulls(onPulls, signal),
    recover: (wanted) => recoverMachines(host, wanted),
    close: async () => {
      await building?.stop()
      await removing.stop()
      await pool.close()
      await weights.close()
      await host.ready.close()
      await closeHost(host, watcher)
    },
  }
}

async function watchExits(
  host: EngineContext,
  onExit: (status: MachineStatus) => void,
  signal: AbortSignal,
): Promise<void> {
  host.events.on('ended', onExit)
  try {
    for (const machine of host.machines.values()) {
      const status = statusOf(machine)
      if (status.state === 'exited' || status.state === 'lost') onExit(status)
    }
    await untilAborted(signal)
  } finally {
    host.events.off('ended', onExit)
  }
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
}

async function closeHost(host: EngineContext, watcher: { close(): void }): Promise<void> {
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
