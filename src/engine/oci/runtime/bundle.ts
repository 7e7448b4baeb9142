// The OCI configuration of a run, as a pure function of the request and the paths. All hardening of a machine is
// decided here (design 3, reliability I2).

import { bundleVariables } from '../../../lib/egress/trust.ts'
import type { ImageConfig, MachineSpec, RunSpec } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { HELPER_DIR, type MountPoints } from '../storage/mount-points.ts'
import type { Seccomp } from '../kernel/seccomp.ts'
import { UNIT_PTYS } from '../kernel/shared-counters.ts'
import { type Trust, TRUST, TRUST_FILE } from '../storage/trust.ts'
import type { User } from '../storage/user.ts'
import { traitsOf } from '../traits.ts'
import { type CapabilitySets, capabilitySets, rootsOf } from './capabilities.ts'

export type BundleInput = {
  spec: MachineSpec
  run: RunSpec
  image: ImageConfig
  user: User
  rootfs: string
  mountPoints: MountPoints
  helperDir: string
  /** The file with the machine's fork generation, if it is not the shared one. */
  forkGeneration: string | null
  volumeDir: string | null
  trust: Trust | null
  cgroupPath: string
  networkNamespace: string
  ioDevice: { major: number; minor: number } | null
  seccomp: Seccomp
  openFiles: number
  /** How much /dev/shm takes at most: memory of the machine, within its limit. */
  shmBytes: number
}

export const HELPER = `${HELPER_DIR}/busybox`
/** The file next to the helper with the number of forks between a machine and its first ancestor. */
export const FORK_GENERATION = 'fork-generation'

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const MB = 1024 * 1024
const CPU_PERIOD_US = 100_000
/** A smaller machine gets this much CPU until it has started, and then its own size (machine/startup.ts). */
const CPUS_TO_START = 1
const IO_BYTES_PER_CPU_SECOND = 400 * MB

export type Process = {
  terminal: boolean
  consoleSize?: { width: number; height: number }
  user: { uid: number; gid: number; additionalGids: number[] }
  args: string[]
  env: string[]
  cwd: string
  capabilities: CapabilitySets
  rlimits: { type: string; hard: number; soft: number }[]
  noNewPrivileges: true
  oomScoreAdj: number
}

export type OciConfig = { process: Process; [key: string]: unknown }

export function buildConfig(input: BundleInput): OciConfig {
  const { spec, run } = input
  const native = traitsOf(spec).sharesKernel
  return {
    ociVersion: '1.0.2',
    hostname: run.hostname,
    root: { path: input.rootfs, readonly: false },
    process: buildProcess(input),
    mounts: buildMounts(input, native),
    linux: {
      cgroupsPath: input.cgroupPath,
      namespaces: [
        { type: 'pid' },
        { type: 'ipc' },
        { type: 'uts' },
        { type: 'mount' },
        ...(native ? [{ type: 'cgroup' }] : []),
        { type: 'network', path: input.networkNamespace },
      ],
      resources: buildResources(spec, input.ioDevice),
      // Of all mounts: where the data directory is a shared one, what a unit mounts in it would be mounted on the host too.
      rootfsPropagation: 'rslave',
      maskedPaths,
      // Container engines set up forwarding there: in the sandbox's own kernel.
      readonlyPaths: isNested(spec) ? readonlyPaths.filter((path) => path !== '/proc/sys') : readonlyPaths,
      ...(native ? { seccomp: input.seccomp, sysctl } : {}),
    },
  }
}

/** The process of an exec: the machine's own, with other arguments. */
export function execProcess(
  main: Process,
  args: string[],
  extra: { env?: string[]; asRoot?: boolean; account?: Account | null } = {},
): Process {
  const process = { ...main, args, env: [...main.env, ...(extra.env ?? [])] }
  if (extra.account) return asAccount(process, extra.account)
  if (!extra.asRoot) return process
  return {
    ...process,
    user: { uid: 0, gid: 0, additionalGids: [] },
    cwd: '/',
    capabilities: rootsOf(main.capabilities),
  }
}

/** The user of a command, as numbers. */
export type Account = { uid: number; gid: number; additionalGids: number[]; home: string }

/** The same process for another user. Its home is the user's, unless the environment of the command says otherwise. */
export function asAccount(process: Process, { uid, gid, additionalGids }: Account): Process {
  return { ...process, user: { uid, gid, additionalGids }, capabilities: capabilitySets(uid) }
}

/** An environment with other values over its own. */
export function withEnv(entries: string[], over: Record<string, string>): string[] {
  const kept = entries.filter((entry) => !Object.hasOwn(over, entry.split('=')[0] ?? ''))
  return [...kept, ...Object.entries(over).map(([name, value]) => `${name}=${value}`)]
}

function buildProcess({ spec, run, image, user, openFiles, trust }: BundleInput): Process {
  return {
    terminal: false,
    user: { uid: user.uid, gid: user.gid, additionalGids: user.additionalGids },
    args: commandLine(run, image),
    env: environment(run, image, user, trust),
    cwd: image.workingDir === '' ? '/' : image.workingDir,
    capabilities: capabilitySets(user.uid, isNested(spec)),
    rlimits: [
      { type: 'RLIMIT_NOFILE', hard: openFiles, soft: openFiles },
      { type: 'RLIMIT_CORE', hard: 0, soft: 0 },
    ],
    noNewPrivileges: true,
    // Under memory pressure the kernel kills a machine before the processes that serve all of them.
    oomScoreAdj: 500,
  }
}

/** As in Docker, an entrypoint of the caller discards the image's cmd. */
function commandLine(run: RunSpec, image: ImageConfig): string[] {
  const args =
    run.entrypoint === null
      ? [...image.entrypoint, ...(run.cmd ?? image.cmd)]
      : [...run.entrypoint, ...(run.cmd ?? [])]
  if (args.length === 0) {
    throw new EngineError('start_failed', 'The image names no command to run: give `cmd` or `entrypoint`.')
  }
  return args
}

/** Later entries override earlier ones: defaults, then the image, then where what it trusts is, then the caller. */
function environment(run: RunSpec, image: ImageConfig, user: User, trust: Trust | null): string[] {
  const values = new Map<string, string>([
    ['PATH', DEFAULT_PATH],
    ['HOSTNAME', run.hostname],
    ['HOME', user.home],
  ])
  for (const entry of image.env) {
    const at = entry.indexOf('=')
    if (at > 0) values.set(entry.slice(0, at), entry.slice(at + 1))
  }
  if (trust !== null) for (const name of bundleVariables) values.set(name, TRUST_FILE)
  for (const [name, value] of Object.entries(run.env)) values.set(name, value)
  return [...values].map(([name, value]) => `${name}=${value}`)
}

function buildMounts(input: BundleInput, native: boolean): object[] {
  const mount = (destination: string, type: string, source: string, options: string[]) => ({
    destination,
    type,
    source,
    options,
  })
  const bind = (destination: string, source: string, access: 'ro' | 'rw') =>
    mount(destination, 'bind', source, ['bind', access, 'nosuid', 'nodev'])
  const { helper, volume, tmp } = input.mountPoints
  return [
    mount('/proc', 'proc', 'proc', ['nosuid', 'noexec', 'nodev']),
    mount('/dev', 'tmpfs', 'tmpfs', ['nosuid', 'strictatime', 'mode=755', 'size=65536k']),
    mount('/dev/pts', 'devpts', 'devpts', [
      'nosuid',
      'noexec',
      'newinstance',
      'ptmxmode=0666',
      'mode=0620',
      'gid=5',
      // gVisor has its own.
      ...(native ? [`max=${UNIT_PTYS}`] : []),
    ]),
    mount('/dev/shm', 'tmpfs', 'shm', ['nosuid', 'noexec', 'nodev', 'mode=1777', `size=${input.shmBytes}`]),
    mount('/dev/mqueue', 'mqueue', 'mqueue', ['nosuid', 'noexec', 'nodev']),
    mount('/sys', 'sysfs', 'sysfs', ['nosuid', 'noexec', 'nodev', 'ro']),
    // Language runtimes read their limits here.
    ...(native ? [mount('/sys/fs/cgroup', 'cgroup', 'cgroup', ['nosuid', 'noexec', 'nodev', 'ro'])] : []),
    // The sandbox's own groups, for the containers in it.
    ...(isNested(input.spec)
      ? [mount('/sys/fs/cgroup', 'cgroup', 'cgroup', ['nosuid', 'noexec', 'nodev'])]
      : []),
    // Before the volume, which may be below it.
    ...(tmp === null ? [] : [bind('/tmp', tmp, 'rw')]),
    bind(helper, input.helperDir, 'ro'),
    ...(input.forkGeneration === null
      ? []
      : [bind(`${helper}/${FORK_GENERATION}`, input.forkGeneration, 'ro')]),
    ...(input.trust === null
      ? []
      : [`${helper}/${TRUST}`, ...input.trust.at].map((at) => bind(at, input.trust?.file ?? '', 'ro'))),
    ...(input.volumeDir === null || volume === null ? [] : [bind(volume, input.volumeDir, 'rw')]),
  ]
}

/** Containers may run in it: only where its kernel is its own. Anything else is refused before (machine/context.ts). */
function isNested(spec: MachineSpec): boolean {
  return spec.nested === true && !traitsOf(spec).sharesKernel
}

/** Microseconds of CPU time in each period. */
export function cpuQuota(cpus: number): number {
  return Math.round(cpus * CPU_PERIOD_US)
}

function buildResources(spec: MachineSpec, ioDevice: BundleInput['ioDevice']): object {
  const { ownMemoryMb, ownPids } = traitsOf(spec)
  const limit = (spec.size.memoryMb + ownMemoryMb) * MB
  const rate = Math.round(spec.size.cpus * IO_BYTES_PER_CPU_SECOND)
  return {
    devices: [{ allow: false, access: 'rwm' }],
    memory: { limit, swap: limit },
    cpu: {
      period: CPU_PERIOD_US,
      // With a quarter of a CPU, starting the sandbox alone would take a tenth of a second.
      quota: cpuQuota(Math.max(spec.size.cpus, CPUS_TO_START)),
      shares: Math.max(2, Math.round(spec.size.cpus * 1024)),
    },
    pids: { limit: spec.size.pids + ownPids },
    ...(ioDevice && {
      blockIO: {
        throttleReadBpsDevice: [{ ...ioDevice, rate }],
        throttleWriteBpsDevice: [{ ...ioDevice, rate }],
      },
    }),
  }
}

// Without NET_RAW, ping works through the kernel's ICMP sockets, and an unprivileged server may use port 80: both
// only affect the machine's own network namespace.
export const sysctl = {
  'net.ipv4.ping_group_range': '0 2147483647',
  'net.ipv4.ip_unprivileged_port_start': '0',
}

// Files that reveal the host: its kernel and boot parameters, its disks, hardware and other programs.
const maskedPaths = [
  '/proc/acpi',
  '/proc/asound',
  '/proc/cmdline',
  '/proc/config.gz',
  '/proc/diskstats',
  '/proc/interrupts',
  '/proc/iomem',
  '/proc/ioports',
  '/proc/kallsyms',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/locks',
  '/proc/modules',
  '/proc/partitions',
  '/proc/sched_debug',
  '/proc/scsi',
  '/proc/slabinfo',
  '/proc/swaps',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/vmallocinfo',
  '/sys/block',
  '/sys/class/block',
  '/sys/class/dmi',
  '/sys/dev/block',
  '/sys/devices/virtual/block',
  '/sys/devices/virtual/dmi',
  '/sys/devices/virtual/powercap',
  '/sys/firmware',
  '/sys/fs/btrfs',
  '/sys/kernel/slab',
]

const readonlyPaths = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger']
