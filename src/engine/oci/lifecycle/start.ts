// Starts a run: namespace and root, boot files, configuration, conmon with the runtime, then the process. If memory
// was kept, the runtime restores it instead; if that fails, the run starts without it. A failure at any step rolls
// back the earlier ones; after a crash recover does. Every step has a timeout, and gives up at once when the machine
// is to be destroyed.

import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { basename } from 'node:path'
import { allSettled } from '../../../lib/concurrency/all-settled.ts'
import { type StepTimes, timeSteps } from '../../../lib/slow-steps.ts'
import { startFingerprintOf } from '../../start-fingerprint.ts'
import type { MachineRef, RunSpec, Started } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import type { Effect } from '../failpoints.ts'
import type { OciConfig } from '../runtime/bundle.ts'
import { ownFiles, prepareEtc } from '../machine/etc.ts'
import { shmBytesOf, writtenShmBytes } from '../storage/shm.ts'
import { holdParts, letGoOfParts } from './deaths.ts'
import { recordEndIfExited } from './exits.ts'
import { driverOf, getDriver, getMachine, type EngineContext, type Machine } from '../machine/context.ts'
import type { StoredImage } from '../images/store.ts'
import { currentLogFile } from '../logs/logs.ts'
import { noteInLog } from '../logs/note.ts'
import { consumeCheckpoint, discardCheckpoint, type SavedMemory } from '../checkpoint/checkpoints.ts'
import { makeRun, prepareGroup } from '../machine/make-run.ts'
import type { RunPaths } from '../paths.ts'
import { markRunning, saveRecord } from '../records/record.ts'
import { endStartup, prolongStartup } from '../machine/startup.ts'
import { cleanUpMachine, cleanUpRun, waitForCleanup } from '../machine/clean-up-run.ts'
import { enterRestored } from '../checkpoint/enter-restored.ts'
import type { Driver, Memory } from '../runtime/driver.ts'
import { explainStartFailure } from '../machine/start-errors.ts'
import { endRun } from './stop.ts'
import { letGo, ordersFor, prepareReady, writeOwnEtc } from '../warm-pool/claim.ts'
import { closeReady, dropReady, FIRST_GENERATION, passStandby } from '../warm-pool/ready.ts'

type Beginning = {
  machine: Machine
  generation: number
  run: RunSpec
  paths: RunPaths
  /** What to restore; null without a checkpoint. */
  memory: SavedMemory | null
  times: StepTimes
}

type Launch = Beginning & { image: StoredImage }

export async function startMachine(host: EngineContext, ref: MachineRef, run: RunSpec): Promise<Started> {
  const times = timeSteps(host.clock)
  const effect: Effect = (name, work) => times.measure(name, () => host.effect(name, work))
  try {
    // The rest of the whole is the wait for the lock.
    return await host.lock(ref.id, () =>
      times.measure('locked', () => startLocked({ ...host, effect }, times, ref, run)),
    )
  } finally {
    times.end(host.log, 'machine was slow to start', { machine: ref.id })
  }
}

async function startLocked(
  host: EngineContext,
  times: StepTimes,
  ref: MachineRef,
  run: RunSpec,
): Promise<Started> {
  const machine = getMachine(host, ref.id)
  if (!isDue(machine, ref.generation))
    return { resumed: machine.record.resumed ?? false, runtime: runtimeOf(driverOf(host, machine)) }
  machine.losesProcesses = true
  await times.measure('end', () => endRun(host, machine))
  await times.measure('cleanup', () => waitForCleanup(host, machine))

  const { record } = machine
  const paths = host.paths.run(ref.id, ref.generation)
  const previous = { generation: record.generation, state: record.state, exit: record.exit }
  const undo = async () => {
    letGoOfParts(machine)
    closeReady(machine)
    Object.assign(machine, { process: null, attachment: null })
    await cleanUpMachine(host, machine, paths)
    Object.assign(record, previous, { monitor: null })
  }
  const launched = { machine, generation: ref.generation, run, paths, times, memory: null }
  let resumed = false
  try {
    if (!(await launchReady(host, launched))) {
      const image = await findImage(host, machine)
      if (run.note !== undefined) await noteInLog(host, ref.id, ref.generation, run.note)
      resumed = await tryToResume(host, { ...launched, image }, undo)
      if (!resumed) await launch(host, { ...launched, image })
    }
  } catch (error) {
    await undo()
    await saveRecord(host.paths, record)
    throw error
  }
  // A process that ended at once has left its exit file before we were watching.
  await recordEndIfExited(host, machine)
  return { resumed, runtime: runtimeOf(driverOf(host, machine)) }
}

function runtimeOf({ binary, version }: Driver): string {
  return `${basename(binary)} ${version}`
}

async function findImage({ images }: EngineContext, { record }: Machine): Promise<StoredImage> {
  const image = await images.find(record.spec.imageDigest)
  if (image) return image
  throw new EngineError('image_not_found', 'The image of the machine is no longer on this host.')
}

/** Whether the run was restored from the checkpoint, which is consumed in any case. */
async function tryToResume(
  host: EngineContext,
  launched: Launch,
  undo: () => Promise<void>,
): Promise<boolean> {
  const { machine, run, generation } = launched
  const { id } = machine.record.spec
  const note = (why: string) =>
    noteInLog(host, id, generation, `The saved memory is not used: ${why}. The unit starts from its disk.`)
  try {
    const consumed = await consumeCheckpoint(host, machine, run)
    if (consumed.saved === null) {
      if (consumed.fault !== null) await note(consumed.fault)
      return false
    }
    await launch(host, { ...launched, memory: consumed.saved })
    return true
  } catch (error) {
    const why = await driverOf(host, machine).memory?.complaint(launched.paths.dir)
    host.log.warn({ err: error, why, machine: id }, 'memory could not be restored; machine is cold started')
    await undo()
    await note('it could not be restored')
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
  const { machine, run, paths, image, memory, times } = launched
  const { record } = machine
  const { spec } = record
  // Left by a failed cleanup: the names of this run must be free.
  if (existsSync(paths.dir)) await cleanUpRun(host, paths)
  // Before the record shows a first run, so that no crash leaves a machine without them.
  // A copy whose own kernel may have read them before is told of them as well, once it is there. What runs in it goes on at
  // once, and may ask for a sibling by name before that.
  // Only what saved its memory restores it.
  const driver = memory === null ? getDriver(host, spec) : driverOf(host, machine)
  const introduce = record.generation === 0 && memory !== null ? memoryOf(driver).introduce : null
  if (record.generation === 0) await host.effect('engine.start.etc', () => prepareEtc(host, launched))
  begin(launched, driver)

  const prepared = machine.attachment
  machine.attachment = null
  const group = { machineId: spec.id, group: spec.networkGroup, address: record.address }
  const [{ namespacePath: networkNamespace }] = await allSettled([
    host.effect('engine.start.network', async () => prepared ?? (await host.network.attach(group))),
    host.effect('engine.start.record', () => saveRecord(host.paths, record)),
    makeDirectories(paths),
  ])
  const restricted = restrict(host, launched)
  // What it trusts is known then.
  if (run.egress !== null && run.egress.secrets.length > 0) await restricted
  await times.measure('room', () => host.ready.makeRoom(spec.size.memoryMb))
  prepareGroup(host, { record, paths })
  const { signal } = machine.destroySignal
  const { config, monitor } = await makeRun(host, {
    record,
    driver,
    run,
    paths,
    image,
    networkNamespace,
    signal,
    shmBytes: writtenShmBytes(record),
    stdin: null,
    logFile: currentLogFile(host, spec.id, launched.generation),
    restored:
      memory === null
        ? null
        : async () => await memoryOf(driver).prepare(memory.directory, run.hostname, networkNamespace),
  })
  record.monitor = monitor
  await restricted
  machine.ending = false
  const go = await host.effect('engine.start.go', () =>
    memory === null
      ? driver.start(paths, signal)
      : enterRestored(host.cgroups, memoryOf(driver), paths.container, signal),
  )
  const { address, forkGeneration } = record
  if (introduce !== null && go.kind === 'started')
    await introduce(paths.container, { files: ownFiles(host, address, run), forkGeneration }, signal)
  if (go.kind === 'failed') throw explainStartFailure(host, config.process, go.reason)
  await recordRunning(host, launched, config)
}

function memoryOf({ class: name, memory }: Driver): Memory {
  if (memory === null) throw new Error(`class ${name} cannot restore memory`)
  return memory
}

/** Starts the run of a machine that was made ahead. Returns false if the machine does not fit this run; it is removed then. */
async function launchReady(host: EngineContext, launched: Beginning): Promise<boolean> {
  const { machine, run } = launched
  const { ready, record } = machine
  if (!ready) return false
  const orders = launched.generation === FIRST_GENERATION ? ordersFor(ready, run) : null
  if (orders === null) return await missed(host, machine)
  const keepRecord = async () => {
    // Before the record shows a first run, as in any start.
    await host.effect('engine.start.etc', () => writeOwnEtc(host, machine, ready, run))
    begin(launched, ready.driver)
    record.monitor = ready.monitor
    await host.effect('engine.start.record', () => saveRecord(host.paths, record))
  }
  const restricted = restrict(host, launched)
  const [message] = await allSettled([prepareReady(host, machine, ready, orders), keepRecord()])
  if (message === null) return await missed(host, machine)
  await restricted
  machine.ending = false
  const began = await host.effect('engine.start.go', () => letGo(machine, ready, message))
  if (!began) return await missed(host, machine)
  host.ready.count('hit')
  passStandby(host, machine, ready)
  closeReady(machine)
  await recordRunning(host, launched, orders.config)
  return true
}

/** To be awaited before anything of the run executes; meanwhile its root is made. */
function restrict({ network }: EngineContext, { machine, run, times }: Beginning): Promise<void> {
  const restricted = times.measure('restrict', () => network.restrict(machine.record.spec.id, run.egress))
  restricted.catch(() => {})
  return restricted
}

async function missed(host: EngineContext, machine: Machine): Promise<false> {
  host.ready.count('miss')
  // The start begins again.
  Object.assign(machine.record, { generation: 0, state: 'created', monitor: null })
  await dropReady(host, machine)
  return false
}

function begin({ machine, generation, run, memory }: Beginning, { program }: Driver): void {
  Object.assign(machine.record, { generation, state: 'starting', monitor: null, exit: null })
  const shmBytes = memory?.shmBytes ?? shmBytesOf(machine.record.spec)
  const how = { beginning: startFingerprintOf(run), resumed: memory !== null, egress: run.egress, program }
  Object.assign(machine.record, { ...how, shmBytes })
}

async function recordRunning(
  host: EngineContext,
  { machine, generation, run, paths, memory }: Beginning,
  { process }: OciConfig,
): Promise<void> {
  const { record } = machine
  holdParts(machine)
  if (run.probed && memory === null) prolongStartup(host, machine)
  else endStartup(host, machine, generation)

  const ended = Promise.withResolvers<void>()
  Object.assign(machine, { process, ended: ended.promise, markEnded: ended.resolve })
  // First: until then no one looks for the end of this run.
  await host.effect('engine.start.running', async () => markRunning(paths, record.monitor))
  record.state = 'running'
  machine.losesProcesses = false
}

async function makeDirectories(paths: RunPaths): Promise<void> {
  await mkdir(paths.execs, { recursive: true, mode: 0o700 })
  await mkdir(paths.rootfs, { recursive: true })
}
