// Starts a run: namespace and root, boot files, configuration, conmon with the runtime, then the process. If memory
// was kept, the runtime restores it instead; if that fails, the run starts without it. A failure at any step rolls
// back the earlier ones; after a crash recover does. Every step has a timeout, and gives up at once when the machine
// is to be destroyed.

import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { allSettled } from '../../../lib/concurrency/all-settled.ts'
import { startFingerprintOf } from '../../start-fingerprint.ts'
import type { MachineRef, RunSpec, Started } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { writeBootFiles } from '../storage/boot-files.ts'
import { buildConfig, cpuQuota, type OciConfig } from '../runtime/bundle.ts'
import { socketBufferBytes } from '../kernel/capacity.ts'
import { cgroupPath, limitSocketBuffers, placeInTeam, setCpuQuota } from '../kernel/cgroups.ts'
import { atExpenseOf, prepareTeam } from '../kernel/team-groups.ts'
import { prepareEtc } from '../storage/etc.ts'
import { holdParts, letGoOfParts } from './deaths.ts'
import { recordEndIfExited } from './exits.ts'
import { prepareForkGeneration } from '../snapshot/generation.ts'
import { getMachine, getRuntime, type EngineContext, type Machine } from '../context.ts'
import type { StoredImage } from '../images/store.ts'
import { currentLogFile } from '../logs/logs.ts'
import { discardCheckpoint, consumeCheckpoint } from '../checkpoint/checkpoints.ts'
import { startMonitor } from '../runtime/monitor.ts'
import { prepareMountPoints } from '../storage/mount-points.ts'
import type { RunPaths } from '../paths.ts'
import { saveRecord } from './record.ts'
import { cleanUpMachine, cleanUpRun, waitForCleanup } from './clean-up-run.ts'
import { enterRestored, prepareRestore } from '../checkpoint/restore.ts'
import { criuErrors, type Runtime, startContainer } from '../runtime/runtime.ts'
import { explainStartFailure } from '../runtime/start-errors.ts'
import { endRun } from './stop.ts'
import { detachMount, mountOverlay } from '../kernel/syscalls.ts'
import { resolveUser } from '../storage/user.ts'

type Launch = {
  machine: Machine
  generation: number
  run: RunSpec
  paths: RunPaths
  image: StoredImage
  /** The directory of the checkpoint to restore; null without one. */
  memory: string | null
}

export function startMachine(host: EngineContext, ref: MachineRef, run: RunSpec): Promise<Started> {
  return host.lock(ref.id, async () => {
    const machine = getMachine(host, ref.id)
    if (!isDue(machine, ref.generation)) return { resumed: machine.record.resumed ?? false }
    machine.losesProcesses = true
    await endRun(host, machine)
    await waitForCleanup(host, machine)

    const { record } = machine
    const image = await host.images.find(record.spec.imageDigest)
    if (!image)
      throw new EngineError('image_not_found', 'The image of the machine is no longer on this host.')
    const paths = host.paths.run(ref.id, ref.generation)
    const previous = { generation: record.generation, state: record.state, exit: record.exit }
    const undo = async () => {
      letGoOfParts(machine)
      Object.assign(machine, { process: null, attachment: null })
      await cleanUpMachine(host, machine, paths)
      Object.assign(record, previous, { monitor: null })
    }
    const launched = { machine, generation: ref.generation, run, paths, image }
    const resumed = await tryToResume(host, launched, undo)
    try {
      if (!resumed) await launch(host, { ...launched, memory: null })
    } catch (error) {
      await undo()
      await saveRecord(host.paths, record)
      throw error
    }
    // A process that ended at once has left its exit file before we were watching.
    await recordEndIfExited(host, machine)
    return { resumed }
  })
}

/** Whether the run was restored from the checkpoint, which is consumed in any case. */
async function tryToResume(
  host: EngineContext,
  launched: Omit<Launch, 'memory'>,
  undo: () => Promise<void>,
): Promise<boolean> {
  const { machine, run } = launched
  const { id } = machine.record.spec
  try {
    const memory = await consumeCheckpoint(host, machine, run)
    if (memory === null) return false
    await launch(host, { ...launched, memory })
    return true
  } catch (error) {
    const why = await criuErrors(join(launched.paths.dir, 'restore.log'))
    host.log.warn({ err: error, why, machine: id }, 'memory could not be restored; machine is cold started')
    await undo()
    return false
  } finally {
    await discardCheckpoint(host.paths, id)
  }
}

/** Returns whether the run is yet to be started; throws if it never can be. */
function isDue({ record, destroySignal }: Machine, generation: number): boolean {
  if (destroySignal.signal.aborted)
    throw new EngineError('unknown_machine', 'The machine is being destroyed.')
  if (generation < record.generation) return false
  if (generation > record.generation || record.state === 'created') return true
  // With an exit code it is reported as an exit; without one it never ran, or the host lost it.
  if (record.state === 'running' || record.exit) return false
  throw new EngineError('run_lost', 'This run of the machine was interrupted.')
}

async function launch(host: EngineContext, launched: Launch): Promise<void> {
  const { machine, generation, run, paths, memory } = launched
  const { record } = machine
  const { spec } = record
  // Left by a failed cleanup: the names of this run must be free.
  if (existsSync(paths.dir)) await cleanUpRun(host, paths)
  // Before the record shows a first run, so that no crash leaves a machine without them.
  if (record.generation === 0) await host.effect('engine.start.etc', () => prepareEtc(host, launched))
  Object.assign(record, { generation, state: 'starting', monitor: null, exit: null })
  Object.assign(record, { beginning: startFingerprintOf(run), resumed: memory !== null, egress: run.egress })

  const prepared = machine.attachment
  machine.attachment = null
  const group = { machineId: spec.id, group: spec.networkGroup, address: record.address }
  const [attachment] = await allSettled([
    host.effect('engine.start.network', async () => prepared ?? (await host.network.attach(group))),
    host.effect('engine.start.record', () => saveRecord(host.paths, record)),
    makeDirectories(paths),
  ])
  prepareTeam(host.cgroups, spec.networkGroup)
  placeInTeam(host.cgroups, paths.container, spec.networkGroup)
  // gVisor's buffers are its own memory, and runsc sets no limit in an existing group.
  if (spec.isolation === 'runc')
    limitSocketBuffers(host.cgroups, paths.container, socketBufferBytes(spec.size.memoryMb))
  const config = await makeRoot(host, launched, attachment.namespacePath)
  machine.ending = false
  const { destroySignal } = machine
  const runtime = getRuntime(host, spec.isolation)
  const go = await host.effect('engine.start.go', () =>
    memory === null
      ? startContainer(runtime, paths.container, destroySignal.signal)
      : enterRestored(host.cgroups, runtime, paths.container, destroySignal.signal),
  )
  if (go.kind === 'failed') throw explainStartFailure(host, config.process.args, go.reason)
  holdParts(machine)
  // Before the record says that it runs, so that an adopted machine has the size it is billed for.
  setCpuQuota(host.cgroups, paths.container, cpuQuota(machine.record.spec.size.cpus))

  const ended = Promise.withResolvers<void>()
  Object.assign(machine, { process: config.process, ended: ended.promise, markEnded: ended.resolve })
  // Recorded first: until then no one looks for the end of this run.
  const running = { ...record, state: 'running' as const }
  await host.effect('engine.start.running', () => saveRecord(host.paths, running))
  Object.assign(record, running)
  machine.losesProcesses = false
}

/** Mounts the root, has the container created in it, and removes the mount from the host again. */
async function makeRoot(host: EngineContext, launched: Launch, networkNamespace: string): Promise<OciConfig> {
  const { machine, generation, run, paths, image, memory } = launched
  const { spec } = machine.record
  const { signal } = machine.destroySignal
  const runtime = getRuntime(host, spec.isolation)
  const disk = host.paths.machine(spec.id)
  try {
    await host.effect('engine.start.root', async () => {
      detachMount(paths.rootfs)
      mountOverlay(paths.rootfs, { lower: image.rootfs, upper: disk.upper, work: disk.work })
    })
    const config = buildConfig({
      spec,
      run,
      image: image.image.config,
      user: resolveUser(image.rootfs, image.image.config.user),
      rootfs: paths.rootfs,
      mountPoints: await prepareMountPoints(paths.rootfs, spec),
      helperDir: host.paths.helper,
      forkGeneration: await prepareForkGeneration(machine.record, paths),
      volumeDir: spec.volume ? disk.volume : null,
      cgroupPath: cgroupPath(host.cgroups, paths.container),
      networkNamespace,
      ioDevice: host.ioDevice,
      seccomp: host.seccomp,
      openFiles: host.openFiles,
    })
    await host.effect('engine.start.bundle', () =>
      writeFile(paths.config, JSON.stringify(withCriu(runtime, config)), { mode: 0o600 }),
    )
    await host.effect('engine.start.boot-files', async () => {
      // A restored machine already has them, possibly changed by its process.
      if (memory === null && run.files.length > 0) await writeBootFiles(paths.rootfs, run.files, signal)
    })
    const restored =
      memory === null ? null : await prepareRestore(runtime, memory, run.hostname, networkNamespace)
    const logFile = currentLogFile(host, spec.id, generation)
    const started = await host.effect('engine.start.monitor', () =>
      startMonitor(
        runtime,
        paths,
        { logFile, exitDir: host.paths.exits, charge: atExpenseOf(host.cgroups, spec.networkGroup) },
        signal,
        restored,
      ),
    )
    if (started.kind === 'failed') throw explainStartFailure(host, config.process.args, started.reason)
    machine.record.monitor = started.monitor
    return config
  } finally {
    // The sandbox now has the mount in its own namespace. The host does not need it any more, and a mount that is
    // gone cannot be left behind.
    detachMount(paths.rootfs)
  }
}

/** The runtime reads there what its command line does not offer (criu.ts). */
function withCriu({ criu }: Runtime, config: OciConfig): OciConfig {
  return criu === null ? config : { ...config, annotations: { 'org.criu.config': criu.options } }
}

async function makeDirectories(paths: RunPaths): Promise<void> {
  await mkdir(paths.execs, { recursive: true, mode: 0o700 })
  await mkdir(paths.rootfs, { recursive: true })
}
