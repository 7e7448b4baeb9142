// Starts a run: namespace and root, boot files, configuration, conmon with the runtime, go. A failure at any
// step takes back what the steps before it did; a crash in between is taken back by recover.

import { mkdir, writeFile } from 'node:fs/promises'
import type { MachineRef, RunSpec } from '../engine.ts'
import { EngineError } from '../errors.ts'
import { writeBootFiles } from './boot-files.ts'
import { buildConfig } from './bundle.ts'
import { cgroupPath } from './cgroups.ts'
import { prepareEtc } from './create.ts'
import { settleEnd } from './exits.ts'
import { getMachine, getRuntime, type Host, type Machine } from './host.ts'
import { currentLogFile } from './logs.ts'
import { startMonitor } from './monitor.ts'
import type { RunPaths } from './paths.ts'
import { saveRecord } from './record.ts'
import { takeBack } from './remains.ts'
import { endRun } from './stop.ts'
import { startContainer, type Runtime } from './runtime.ts'
import { explainStartFailure } from './start-failure.ts'
import { detachMount, mountOverlay } from './syscalls.ts'
import { resolveUser } from './user.ts'

export function startMachine(host: Host, ref: MachineRef, run: RunSpec): Promise<void> {
  return host.lock(ref.id, async () => {
    const machine = getMachine(host, ref.id)
    const { record } = machine
    if (ref.generation < record.generation) return
    if (ref.generation === record.generation && record.state !== 'created') {
      // Ended with an exit code it is told as an exit; without one it never was, or the host lost it.
      if (record.state === 'running' || record.exit) return
      throw new EngineError('run_lost', 'This run of the machine was cut short.')
    }
    await endRun(host, machine)
    await machine.cleanup
    const runtime = getRuntime(host, record.spec.isolation)
    const paths = host.paths.run(ref.id, ref.generation)
    const previous = { generation: record.generation, state: record.state, exit: record.exit }
    try {
      await launch(host, machine, runtime, paths, ref.generation, run)
    } catch (error) {
      await takeBack(host, runtime, paths)
      Object.assign(record, previous)
      machine.process = null
      await saveRecord(host.paths, record)
      throw error
    }
    // A process that ended at once has left its exit file before we were looking.
    await settleEnd(host, machine)
  })
}

async function launch(
  host: Host,
  machine: Machine,
  runtime: Runtime,
  paths: RunPaths,
  generation: number,
  run: RunSpec,
): Promise<void> {
  const { record } = machine
  const { spec } = record
  const image = await host.images.find(spec.imageDigest)
  if (!image) throw new EngineError('image_not_found', 'The image of the machine is no longer on this host.')
  const firstStart = record.generation === 0
  Object.assign(record, { generation, state: 'starting', monitor: null, exit: null })

  const [attachment] = await Promise.all([
    machine.attachment ??
      host.network.attach({ machineId: spec.id, group: spec.networkGroup, address: record.address }),
    mkdir(paths.execs, { recursive: true, mode: 0o700 }).then(() => mkdir(paths.rootfs, { recursive: true })),
    saveRecord(host.paths, record),
    firstStart ? prepareEtc(host, spec.id, { ...run, address: record.address }) : undefined,
  ])
  machine.attachment = null
  const config = buildConfig({
    spec,
    run,
    image: image.image.config,
    user: resolveUser(image.rootfs, image.image.config.user),
    rootfs: paths.rootfs,
    helperDir: host.paths.helper,
    volumeDir: spec.volume ? host.paths.machine(spec.id).volume : null,
    cgroupPath: cgroupPath(host.cgroups, paths.container),
    networkNamespace: attachment.namespacePath,
    ioDevice: host.ioDevice,
    seccomp: host.seccomp,
    openFiles: host.openFiles,
  })
  await writeFile(paths.config, JSON.stringify(config), { mode: 0o600 })

  const disk = host.paths.machine(spec.id)
  mountOverlay(paths.rootfs, { lower: image.rootfs, upper: disk.upper, work: disk.work })
  try {
    if (run.files.length > 0) await writeBootFiles(paths.rootfs, host.paths.helper, run.files)
    const logFile = currentLogFile(host, spec.id, generation)
    const started = await startMonitor(runtime, paths, logFile, host.paths.exits)
    if (started.kind === 'failed') throw explainStartFailure(host, config.process.args, started.reason)
    record.monitor = started.monitor
  } finally {
    // The sandbox holds the mount now, in its own namespace: the host needs it no longer, and what is not
    // mounted cannot be left behind.
    detachMount(paths.rootfs)
  }
  machine.ending = false
  const go = await startContainer(runtime, paths.container)
  if (go.exitCode !== 0) throw explainStartFailure(host, config.process.args, go.stderr)

  const ended = Promise.withResolvers<void>()
  Object.assign(machine, { process: config.process, ended: ended.promise, markEnded: ended.resolve })
  Object.assign(record, { state: 'running', exit: null })
  await saveRecord(host.paths, record)
}
