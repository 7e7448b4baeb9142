// Checkpoints of machines: their memory, kept as files after a run. They are a cache: if anything is wrong with one,
// the machine starts from its disk, which is complete. Memory is never combined with an older or newer disk:
//
// - A checkpoint is used by the machine's very next start, which consumes it first.
// - A running machine has no checkpoint: a dump that an engine died over is removed before the run can go on.
// - A checkpoint is only valid in the boot it was made in. We do not fsync: after a power loss the boot id differs and
//   every checkpoint is discarded.
//
// The manifest says what they were made of and with, and has a mark of each file, to find out whether it is whole.

import { readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startFingerprintOf } from '../../start-fingerprint.ts'
import type { RunSpec } from '../../engine.ts'
import { memoryInUse } from '../kernel/cgroup-memory.ts'
import { driverOf, type EngineContext, type Machine } from '../machine/context.ts'
import { hasPendingKill } from '../runtime/monitor.ts'
import { removeTree } from '../kernel/mounts.ts'
import type { Paths } from '../paths.ts'
import type { MachineRecord } from '../records/record.ts'
import { writtenShmBytes } from '../storage/shm.ts'

/** `changed`: when the file was, in nanoseconds. Absent in those of earlier versions, which have a sum of the content. */
type Mark = { bytes: number; changed?: string }

type Manifest = {
  machine: string
  /** The machine's newest run when this was kept: only the next run may use it. */
  generation: number
  beginning: string
  imageDigest: string
  /** What saved it (`Memory` in runtime/driver.ts). */
  madeWith: string
  boot: string
  /** The size of /dev/shm that it was saved from. */
  shmBytes?: number
  files: Record<string, Mark>
}

const MANIFEST = 'manifest.json'
const GB = 1024 ** 3

/**
 * Dumps the memory of a frozen run for the machine `to`: itself, or a copy that is being made. The run stays frozen.
 * Returns false if that is not possible in time; never rejects.
 */
export async function dumpCheckpoint(
  host: EngineContext,
  machine: Machine,
  to: string,
  timeoutMs: number,
): Promise<boolean> {
  const { spec, generation, beginning, monitor } = machine.record
  const memory = driverOf(host, machine).memory
  // A process with a pending SIGKILL would die of it again.
  if (memory === null || beginning === undefined || !monitor || hasPendingKill(monitor)) return false
  const { container } = host.paths.run(spec.id, generation)
  const { memoryNext } = host.paths.machine(to)
  try {
    if (!(await hasSpace(host, memoryInUse(host.cgroups, container)))) return false
    await host.effect('engine.checkpoint.dump', async () => {
      await removeTree(memoryNext)
      await mkdir(memoryNext, { recursive: true, mode: 0o700 })
      const { signal } = machine.destroySignal
      await memory.save(container, memoryNext, { timeoutMs, signal, ends: to === spec.id })
    })
    return true
  } catch (error) {
    host.log.warn({ err: error, machine: spec.id }, 'checkpoint dump failed')
    await removeTree(memoryNext)
    return false
  }
}

/**
 * Makes the dump of `source` the checkpoint of a machine that does not run, or is about to be ended. `generation`:
 * its newest run. Returns whether that worked; never rejects.
 */
export async function commitCheckpoint(
  host: EngineContext,
  source: MachineRecord,
  { id, generation }: { id: string; generation: number },
): Promise<boolean> {
  const { memory, memoryNext } = host.paths.machine(id)
  try {
    await host.effect('engine.checkpoint.commit', async () => {
      const files = await markFiles(memoryNext)
      // At the second attempt there is nothing left to do.
      if (files === null) return
      const manifest: Manifest = {
        machine: id,
        generation,
        beginning: source.beginning ?? '',
        imageDigest: source.spec.imageDigest,
        madeWith: driverOf(host, { record: source }).memory?.madeWith ?? '',
        boot: bootId(),
        shmBytes: writtenShmBytes(source),
        files,
      }
      await rm(memory, { recursive: true, force: true })
      await writeFile(join(memoryNext, MANIFEST), JSON.stringify(manifest), { mode: 0o600 })
      await rename(memoryNext, memory)
    })
    return await hasCheckpoint(host, { id, generation })
  } catch (error) {
    host.log.warn({ err: error, machine: id }, 'checkpoint commit failed')
    await discardCheckpoint(host.paths, id)
    return false
  }
}

/** Whether the machine has a checkpoint of its newest run. */
export async function hasCheckpoint(
  host: EngineContext,
  { id, generation }: { id: string; generation: number },
): Promise<boolean> {
  return (await readManifest(host.paths.machine(id).memory))?.generation === generation
}

/** Memory to restore, and the size of /dev/shm that it was saved from. */
export type SavedMemory = { directory: string; shmBytes: number }

/** `fault`: why the memory that was saved is not used; null: none was saved. */
export type Consumed = { saved: SavedMemory } | { saved: null; fault: string | null }

/** Consumes the checkpoint of a machine that is about to start: no later run can use it. */
export async function consumeCheckpoint(
  host: EngineContext,
  { record }: Machine,
  run: RunSpec,
): Promise<Consumed> {
  const { id } = record.spec
  const { memory, memoryUsed } = host.paths.machine(id)
  return await host.effect('engine.checkpoint.consume', async () => {
    try {
      await rename(memory, memoryUsed)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
    const manifest = await readManifest(memoryUsed)
    const fault = manifest && (await findFault(host, record, run, memoryUsed, manifest))
    if (manifest && fault === null)
      return { saved: { directory: memoryUsed, shmBytes: writtenShmBytes(manifest) } }
    if (manifest) host.log.warn({ machine: id, fault }, 'checkpoint is not used')
    await discardCheckpoint(host.paths, id)
    return { saved: null, fault }
  })
}

/** Discards the checkpoint of a machine, in any stage. */
export async function discardCheckpoint(paths: Paths, id: string): Promise<void> {
  const { memory, memoryNext, memoryUsed } = paths.machine(id)
  await Promise.all([memory, memoryNext, memoryUsed].map(removeTree))
}

/** Discards checkpoints that were incomplete when an engine died, and those of an earlier boot. */
export async function discardIncompleteCheckpoints(paths: Paths, id: string): Promise<void> {
  const { memory, memoryNext, memoryUsed } = paths.machine(id)
  const isGood = (await readManifest(memory))?.boot === bootId()
  const bad = isGood ? [memoryNext, memoryUsed] : [memory, memoryNext, memoryUsed]
  await Promise.all(bad.map(removeTree))
}

/** What it means if a field of the manifest is not what this run expects. */
const faults = {
  machine: 'it is the memory of another machine',
  generation: 'it is the memory of an earlier run',
  beginning: 'the command, the environment or the files were changed',
  imageDigest: 'the image was changed',
  madeWith: 'another version of the runtime saved it',
  boot: 'the host was booted again',
} as const

async function findFault(
  host: EngineContext,
  record: MachineRecord,
  run: RunSpec,
  directory: string,
  manifest: Manifest,
): Promise<string | null> {
  const { spec, generation } = record
  const { memory } = driverOf(host, { record })
  if (memory === null) return 'this host cannot restore memory any more'
  const expected = {
    machine: spec.id,
    generation,
    beginning: startFingerprintOf(run),
    imageDigest: spec.imageDigest,
    madeWith: memory.madeWith,
    boot: bootId(),
  }
  for (const [name, fault] of Object.entries(faults) as [keyof typeof faults, string][]) {
    if (manifest[name] !== expected[name]) return fault
  }
  const files = await markFiles(directory)
  return files !== null && areSame(files, manifest.files) ? null : 'its files were damaged'
}

function areSame(files: Manifest['files'], expected: Manifest['files']): boolean {
  const names = Object.keys(expected)
  return (
    names.length === Object.keys(files).length &&
    names.every((name) => {
      const [found, wanted] = [files[name], expected[name]]
      const isUnchanged = wanted?.changed === undefined || found?.changed === wanted.changed
      return isUnchanged && found?.bytes === wanted?.bytes
    })
  )
}

/** Their content is not read, which would take longer than to save it. Returns null if the directory does not exist. */
async function markFiles(directory: string): Promise<Manifest['files'] | null> {
  const names = await readdir(directory).catch(() => null)
  if (names === null) return null
  const marks = names
    .filter((name) => name !== MANIFEST)
    .map(async (name) => [name, await markFile(join(directory, name))] as const)
  return Object.fromEntries(await Promise.all(marks))
}

async function markFile(path: string): Promise<Mark> {
  const { size, ctimeNs } = await stat(path, { bigint: true })
  return { bytes: Number(size), changed: String(ctimeNs) }
}

async function readManifest(directory: string): Promise<Manifest | null> {
  try {
    return JSON.parse(await readFile(join(directory, MANIFEST), 'utf8')) as Manifest
  } catch {
    return null
  }
}

/** The images are on the same file system as the pool, so they take space from the disks. */
async function hasSpace(host: EngineContext, bytes: number): Promise<boolean> {
  const { bavail, bsize } = await statfs(host.paths.machines)
  return bavail * bsize > bytes + host.reserveGb * GB
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
}
