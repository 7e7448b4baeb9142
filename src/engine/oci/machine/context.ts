// What every operation of the OCI engine works on: the parts of this host, and its machines.

import type { EndedProcess } from '../../process.ts'
import type { EventEmitter } from 'node:events'
import type { Clock } from '../../../lib/clock.ts'
import type { KeyedLock } from '../../../lib/concurrency/keyed-lock.ts'
import type { Log } from '../../../lib/log.ts'
import type { Capabilities, IsolationClass, MachineRef, MachineSpec, MachineStatus } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import type { Launching } from '../runtime/launching.ts'
import type { Forkers, Standbys } from './standbys.ts'
import type { Worker } from './workers.ts'
import type { Process } from '../runtime/bundle.ts'
import type { Cgroups } from '../kernel/cgroups.ts'
import type { Effect } from '../failpoints.ts'
import type { Images } from '../images/images.ts'
import type { Attachment, Network } from '../network/types.ts'
import type { Paths, RunPaths } from '../paths.ts'
import type { MachineRecord } from '../records/record.ts'
import type { Held } from '../processes/held-process.ts'
import type { Pace } from '../processes/pace.ts'
import type { Driver, DriverOptions } from '../runtime/driver.ts'
import type { KeptMonitor } from '../runtime/kept-monitor.ts'
import type { Seccomp } from '../kernel/seccomp.ts'
import type { Ready, ReadyMachines } from './ready-machine.ts'

export type Machine = {
  record: MachineRecord
  /** Made with the machine, for its first start: later starts make their own. */
  attachment: Attachment | null
  /** A first run of it that was made ahead, and waits for its start (warm-pool). */
  ready: Ready | null
  /** The description of the running process, which execs start from. Loaded from the bundle after an adoption. */
  process: Process | null
  /** Descriptors of the processes that its monitor watches (lifecycle/deaths.ts). */
  parts: number[]
  /** Resolves when the current run has ended and been recorded. */
  ended: Promise<void>
  markEnded: () => void
  /** The cleanup of the last run; the next start waits for it. Never rejects. */
  cleanup: Promise<void>
  /** The run whose cleanup failed: the next start tries again. */
  uncleanedRun: RunPaths | null
  /** Its processes are frozen (freeze.ts); the kernel knows it too, so an adoption finds it again. */
  frozen: boolean
  /** Its own kernel has paused what runs in it (lifecycle/hold.ts). */
  held: boolean
  /** They are paused for an instant, to be copied (quiesce.ts): settles when they resume. Not `frozen` for others. */
  quiesced: Promise<void> | null
  /** What the runtime has made ready for its next commands. */
  standbys: Standbys
  /** What makes them. */
  forkers: Forkers
  /** Those that wait for a request. */
  workers: Set<Worker>
  launching: Launching
  /** The processes of the host that read what its commands have left behind (exec/left-behind.ts). */
  drains: Set<number>
  /** Ports that lead to ports of its loopback, by generation and port (exec/loopback.ts). */
  loopbacks: Map<string, number>
  /** What waits until they resume. */
  onThaw: (() => Promise<void>)[]
  /** Commands that outlive their calls, by id, oldest first: of this run and earlier ones. */
  processes: Map<string, Held>
  /** Its run ends in a way that makes those processes `lost`: suspended, started again, killed. */
  losesProcesses: boolean
  /** It is being ended, or has ended and not been started since. Its last packets do not count as use. */
  ending: boolean
  /** Aborted once its destruction is requested: operations that hold its lock give up. */
  destroySignal: AbortController
}

export type EngineContext = {
  instanceId: string
  paths: Paths
  cgroups: Cgroups
  network: Network
  images: Images
  /** Of new runs. */
  drivers: Map<IsolationClass, Driver>
  /** Of programs that runs were started with, by the name that their records have. */
  programs: Map<string, Driver>
  driverOptions: DriverOptions
  /** Of new runs. */
  monitor: KeptMonitor
  capabilities: Capabilities
  /** The class that the operator wants by default. */
  isolation: 'auto' | IsolationClass
  seccomp: Seccomp
  ioDevice: { major: number; minor: number } | null
  /** The directory of the kernel's accounts of the pool. Null if it is unknown. */
  poolState: string | null
  gatewayAddress: string
  reserveGb: number
  /** How much of the pool the machines of one team may use together. */
  shareBytes: number
  openFiles: number
  log: Log
  clock: Clock
  machines: Map<string, Machine>
  ready: ReadyMachines
  /** Machines whose record cannot be read. Their disks are kept until they are known to be unwanted. */
  damaged: Set<string>
  /** Leftovers that were removed since the last report of recover. */
  swept: number
  lock: KeyedLock
  /** The pace at which output of processes is read, and at which it is reported. */
  takingPace: Pace
  tellingPace: Pace
  effect: Effect
  /** Emits `ended` with a MachineStatus for every run that ends. */
  events: EventEmitter<{ ended: [MachineStatus]; processEnded: [EndedProcess] }>
}

/** In the place of the name of a program: of runs that an engine began which did not write it down. */
export const LEGACY_PROGRAM = 'legacy'

export function newMachine(record: MachineRecord, attachment: Attachment | null): Machine {
  const { promise, resolve } = Promise.withResolvers<void>()
  return {
    record,
    attachment,
    ready: null,
    process: null,
    parts: [],
    ended: promise,
    markEnded: resolve,
    cleanup: Promise.resolve(),
    uncleanedRun: null,
    frozen: false,
    held: false,
    quiesced: null,
    standbys: new Map(),
    forkers: new Map(),
    workers: new Set(),
    launching: new Set(),
    drains: new Set(),
    loopbacks: new Map(),
    onThaw: [],
    processes: new Map(),
    losesProcesses: false,
    ending: false,
    destroySignal: new AbortController(),
  }
}

export function getMachine(host: EngineContext, id: string): Machine {
  const machine = host.machines.get(id)
  if (!machine) throw new EngineError('unknown_machine', 'The machine does not exist on this host.')
  return machine
}

/** Returns the machine if this run of it is running and not frozen. */
export function getRunning(host: EngineContext, ref: MachineRef): Machine {
  const machine = getMachine(host, ref.id)
  if (machine.record.state !== 'running' || machine.record.generation !== ref.generation) {
    throw new EngineError('not_running', 'The machine is not running.')
  }
  if (machine.frozen) throw new EngineError('frozen', 'The machine is frozen.')
  return machine
}

/** The driver of a machine with this spec. Throws `start_failed` where there is none. */
export function getDriver(host: EngineContext, spec: Pick<MachineSpec, 'isolation' | 'nested'>): Driver {
  const driver = host.drivers.get(spec.isolation)
  if (driver) return forSpec(driver, spec)
  throw new EngineError(
    'start_failed',
    `The isolation class ${spec.isolation} is not available on this host.`,
  )
}

/** The driver of the machine's newest run, which keeps the program that it was started with. */
export function driverOf(host: EngineContext, { record }: Pick<Machine, 'record'>): Driver {
  const { program = LEGACY_PROGRAM, spec } = record
  const known = program === null ? undefined : host.programs.get(program)
  return known ? forSpec(known, spec) : getDriver(host, spec)
}

function forSpec(driver: Driver, { nested }: Pick<MachineSpec, 'nested'>): Driver {
  if (nested !== true) return driver
  if (driver.nested.driver) return driver.nested.driver
  throw new EngineError('start_failed', `Containers cannot run in this unit: ${driver.nested.why}.`)
}

export function statusOf(machine: Machine): MachineStatus {
  const { spec, generation, state, exit, address } = machine.record
  // A start in progress may still fail.
  const visible = state === 'starting' ? 'created' : state
  return { id: spec.id, generation, state: visible, frozen: machine.frozen, exit, address }
}
