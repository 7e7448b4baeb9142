// Creates the parts of a run, up to a container that waits to be started: a root from image and disk, the boot
// files, the configuration, conmon with the runtime. A start calls it on request, the warm pool ahead of one.

import { writeFileSync } from 'node:fs'
import type { RunSpec } from '../../engine.ts'
import type { EngineContext } from './context.ts'
import type { StoredImage } from '../images/store.ts'
import { socketBufferBytes } from '../kernel/capacity.ts'
import { cgroupPath, limitSocketBuffers, placeInTeam } from '../kernel/cgroups.ts'
import { detachMount, mountOverlay } from '../kernel/syscalls.ts'
import { atExpenseOf, prepareTeam } from '../kernel/team-groups.ts'
import type { RunPaths } from '../paths.ts'
import { buildConfig, type BundleInput, type OciConfig } from '../runtime/bundle.ts'
import { type Monitor, startMonitor } from '../runtime/monitor.ts'
import type { Driver, Restored } from '../runtime/driver.ts'
import { traitsOf } from '../traits.ts'
import { explainStartFailure } from './start-errors.ts'
import { prepareForkGeneration } from './fork-generation.ts'
import { writeBootFiles } from '../storage/boot-files.ts'
import { prepareMountPoints } from '../storage/mount-points.ts'
import { prepareTrust } from '../storage/trust.ts'
import { resolveUser } from '../storage/user.ts'
import type { MachineRecord } from '../records/record.ts'

export type NewRun = {
  record: Pick<MachineRecord, 'spec' | 'forkGeneration'>
  driver: Driver
  run: RunSpec
  paths: RunPaths
  image: StoredImage
  networkNamespace: string
  logFile: string
  /** A FIFO that its process gets as stdin; null: nothing to read. */
  stdin: string | null
  /** What to restore, once the root is there; null for a run that begins. */
  restored: (() => Promise<Restored>) | null
  /** The size of /dev/shm. */
  shmBytes: number
  /** Called while the root is still mounted on the host. */
  onRoot?: (rootfs: string) => void
  signal: AbortSignal
}

export type MadeRun = { config: OciConfig; input: BundleInput; monitor: Monitor }

/** Its group, before the runtime makes it. */
export function prepareGroup(host: EngineContext, { record, paths }: Pick<NewRun, 'record' | 'paths'>): void {
  const { networkGroup, size } = record.spec
  prepareTeam(host.cgroups, networkGroup)
  placeInTeam(host.cgroups, paths.container, networkGroup)
  // The buffers of another kernel are its own memory, and runsc sets no limit in an existing group.
  if (traitsOf(record.spec).sharesKernel)
    limitSocketBuffers(host.cgroups, paths.container, socketBufferBytes(size.memoryMb))
}

/** Mounts the root, has the container created in it, and removes the mount from the host again. */
export async function makeRun(host: EngineContext, wanted: NewRun): Promise<MadeRun> {
  const { record, driver, run, paths, image, signal } = wanted
  const { spec } = record
  const disk = host.paths.machine(spec.id)
  try {
    await host.effect('engine.start.root', async () => {
      detachMount(paths.rootfs)
      mountOverlay(paths.rootfs, { lower: image.rootfs, upper: disk.upper, work: disk.work })
    })
    const input = await describeRun(host, wanted)
    const config = buildConfig(input)
    await host.effect('engine.start.bundle', async () => writeConfig(driver, paths, config))
    await host.effect('engine.start.boot-files', async () => {
      // A restored machine already has them, possibly changed by its process.
      if (!wanted.restored && run.files.length > 0) await writeBootFiles(paths.rootfs, run.files, signal)
    })
    const restored = (await wanted.restored?.()) ?? null
    const charge = atExpenseOf(host.cgroups, spec.networkGroup)
    const {
      monitor,
      paths: { exits: exitDir },
    } = host
    const place = { monitor, logFile: wanted.logFile, exitDir, charge, stdin: wanted.stdin }
    const started = await host.effect('engine.start.monitor', () =>
      startMonitor(driver, paths, place, signal, restored),
    )
    if (started.kind === 'failed') throw explainStartFailure(host, config.process, started.reason)
    wanted.onRoot?.(paths.rootfs)
    return { config, input, monitor: started.monitor }
  } finally {
    // The sandbox now has the mount in its own namespace. The host does not need it any more, and a mount that is
    // gone cannot be left behind.
    detachMount(paths.rootfs)
  }
}

async function describeRun(
  host: EngineContext,
  { record, driver, run, paths, image, networkNamespace, shmBytes }: NewRun,
): Promise<BundleInput> {
  const { spec } = record
  const mountPoints = await prepareMountPoints(paths.rootfs, spec)
  return {
    spec,
    run,
    image: image.image.config,
    user: resolveUser(image.rootfs, image.image.config.user),
    rootfs: paths.rootfs,
    mountPoints,
    trust: await prepareTrust({
      run,
      rootfs: paths.rootfs,
      imageRootfs: image.rootfs,
      imageEnv: image.image.config.env,
      mountPoints,
      file: paths.trust,
      authority: host.network.authorityOf(spec.networkGroup),
    }),
    helperDir: host.paths.helper,
    forkGeneration: await prepareForkGeneration(record, paths, driver.memory !== null),
    volumeDir: spec.volume ? host.paths.machine(spec.id).volume : null,
    cgroupPath: cgroupPath(host.cgroups, paths.container),
    networkNamespace,
    ioDevice: host.ioDevice,
    seccomp: host.seccomp,
    openFiles: host.openFiles,
    shmBytes,
  }
}

/** In memory: to have another thread do it takes longer. */
export function writeConfig(driver: Driver, paths: RunPaths, config: OciConfig): void {
  writeFileSync(paths.config, JSON.stringify(driver.memory?.inConfig(config) ?? config), { mode: 0o600 })
}
