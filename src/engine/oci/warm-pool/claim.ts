// Turns a ready machine into the machine of a create: it gets an id at the create, and everything else that the
// caller specifies at its start. Until its first process has read the command, nothing has run in it but that process,
// what a built-in image begins ahead and, in gVisor, the one that sets its hostname.

import { existsSync, renameSync, rmSync, symlinkSync, writeSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { allSettled } from '../../../lib/concurrency/all-settled.ts'
import type { MachineSpec, MachineStatus, RunSpec } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { newMachine, statusOf, type EngineContext, type Machine } from '../machine/context.ts'
import { thawGroup } from '../kernel/cgroups.ts'
import { bytesInPipe, hasNoReader, setHostnameOf } from '../kernel/syscalls.ts'
import { writeConfig } from '../machine/make-run.ts'
import { newRecord, saveRecord } from '../records/record.ts'
import { removeMachineState } from '../machine/remove-state.ts'
import { buildConfig, type OciConfig, type Process } from '../runtime/bundle.ts'
import { childrenOf } from '../runtime/monitor.ts'
import { writeBootFiles } from '../storage/boot-files.ts'
import { nameInEtc } from '../machine/etc.ts'
import { isProgramInTree } from '../kernel/unit-tree.ts'
import { nameBy } from './naming.ts'
import { messageFor } from '../machine-programs/wait.ts'
import { removeReady } from './make.ts'
import { closeEnds, nameFirstRun } from './ready.ts'
import type { Ready } from '../machine/ready-machine.ts'

/** Far longer than an execve takes on a busy host. */
const BEGIN_WITHIN_MS = 10_000
const LOOK_EVERY_MS = 1

export type Orders = { config: OciConfig; run: RunSpec }

/** The new machine has the disk, the address and the run of one that was made ahead. */
export async function claimReady(
  host: EngineContext,
  spec: MachineSpec,
  ready: Ready,
): Promise<MachineStatus> {
  const { container } = ready.paths
  const record = { ...newRecord(spec, ready.attachment.address), madeAs: container }
  try {
    // Without a record it is a machine whose creation was interrupted, for the next engine.
    await host.effect('engine.create.disk', () => takeFiles(host, spec, ready))
    await host.effect('engine.create.network', async () => host.network.rename(ready.name, spec.id))
    await host.effect('engine.create.record', () => saveRecord(host.paths, record))
  } catch (error) {
    closeEnds(ready)
    await removeReady(host, ready)
    await removeMachineState(host, spec.id)
    throw error
  }
  nameFirstRun(host.paths, record)
  // Its start comes at once, and needs it awake.
  thawGroup(host.cgroups, container)
  const taken = { ...ready, takenAtMs: host.clock.monotonicMs() }
  const machine = { ...newMachine(record, null), ready: taken }
  host.machines.set(spec.id, machine)
  return statusOf(machine)
}

async function takeFiles(
  host: EngineContext,
  { id, volume }: MachineSpec,
  { name, paths }: Ready,
): Promise<void> {
  const [from, to] = [host.paths.machine(name), host.paths.machine(id)]
  // First: a disk without such a directory would be kept. One that is still under the other name is not (lifecycle/recover.ts).
  await move(from.dir, to.dir)
  await Promise.all([move(from.disk, to.disk), volume && move(from.volume, to.volume)])
  // conmon opens its log by this path again when it is rotated. In memory: to have another thread do it takes longer.
  rmSync(`${paths.logs}.new`, { force: true })
  symlinkSync(to.logs, `${paths.logs}.new`)
  renameSync(`${paths.logs}.new`, paths.logs)
}

/** Repeating it changes nothing. */
async function move(from: string, to: string): Promise<void> {
  if (existsSync(to) && !existsSync(from)) return
  await rename(from, to)
}

/** Returns null if no run can begin so; a start that makes its own run says why. */
export function ordersFor(ready: Ready, run: RunSpec): Orders | null {
  // It has been made without what a machine with secrets trusts.
  if (run.egress !== null && run.egress.secrets.length > 0) return null
  try {
    return { config: buildConfig({ ...ready.input, run }), run }
  } catch {
    return null
  }
}

export async function writeOwnEtc(
  host: EngineContext,
  { record }: Machine,
  ready: Ready,
  run: RunSpec,
): Promise<void> {
  await nameInEtc(host, rootOf(ready), { address: record.address, run })
}

/**
 * Gives it everything but its command. Returns the message that its program waits for; null if there is none for this
 * command.
 */
export async function prepareReady(
  host: EngineContext,
  machine: Machine,
  ready: Ready,
  { config, run }: Orders,
): Promise<Buffer | null> {
  const { signal } = machine.destroySignal
  const [named] = await allSettled([
    nameHost(host, ready, run.hostname),
    host.effect('engine.start.bundle', async () => writeConfig(ready.driver, ready.paths, config)),
    host.effect('engine.start.boot-files', () => writeBootFiles(rootOf(ready), run.files, signal)),
  ])
  const { process: main } = config
  const path = named ? findProgram(ready, main) : null
  return path === null ? null : messageFor({ ...main, path })
}

/** Lets it become what it was made for. Returns false if the command cannot be executed: nothing has run then. */
export async function letGo(machine: Machine, { orders }: Ready, message: Buffer): Promise<boolean> {
  writeSync(orders, message)
  let isAsked = false
  const deadline = performance.now() + BEGIN_WITHIN_MS
  while (performance.now() < deadline) {
    // Its program has closed its end by becoming another one.
    if (hasNoReader(orders)) return true
    if (machine.destroySignal.signal.aborted)
      throw new EngineError('unknown_machine', 'The machine is being destroyed.')
    if (bytesInPipe(orders) === 0) {
      // It reads once more if it could not.
      if (isAsked) return false
      isAsked = writeByte(orders)
    }
    await delay(LOOK_EVERY_MS)
  }
  throw new EngineError('start_failed', 'The machine did not start in time.')
}

/** Returns false if it has no reader any more. */
function writeByte(fd: number): boolean {
  try {
    writeSync(fd, '\0')
    return true
  } catch {
    return false
  }
}

async function nameHost(host: EngineContext, { naming, monitor }: Ready, hostname: string): Promise<boolean> {
  if (naming) return await nameBy(host, naming, hostname)
  const [first] = childrenOf(monitor)
  if (first === undefined) return false
  setHostnameOf(first, hostname)
  return true
}

/** Where a runtime finds the command; null if it is not sure. */
function findProgram(ready: Ready, { args, env }: Process): string | null {
  const [name = ''] = args
  if (name.includes('/')) return name
  const path = env.findLast((entry) => entry.startsWith('PATH='))?.slice('PATH='.length) ?? ''
  const directories = path.split(':')
  if (name === '' || directories.some((directory) => !directory.startsWith('/'))) return null
  const places = directories.map((directory) => `${directory}/${name}`)
  return places.find((place) => isProgramInTree(rootOf(ready), place)) ?? null
}

/** A path to the root of its mount, which has none of its own. */
function rootOf({ root }: Ready): string {
  return `/proc/self/fd/${root}/.`
}
