// What a machine has in memory, kept beyond its run as files. They are a cache: whatever is wrong with them, the
// machine starts anew from its disk, which lacks nothing. So that memory never meets a disk that is older or newer
// than itself:
//
// - what is kept of a machine is used by its very next start, which takes it away before it uses it;
// - whoever runs has nothing kept: a dump that an engine died over is removed before the run can go on;
// - it is good for the boot it was made in. Files and disk reach the hardware in any order and the taking away may not
//   reach it at all, but all of that matters only after the power went. Hence nothing here is flushed.
//
// Files carry checksums, and say what they were made of and with.

import { createReadStream, readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { release } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { startFingerprintOf } from '../../start-fingerprint.ts'
import type { RunSpec } from '../../engine.ts'
import { memoryInUse } from '../kernel/cgroups.ts'
import { getRuntime, type EngineContext, type Machine } from '../context.ts'
import { hasPendingKill } from '../runtime/monitor.ts'
import { removeTree } from '../kernel/mounts.ts'
import type { Paths } from '../paths.ts'
import type { MachineRecord } from '../lifecycle/record.ts'
import { checkpointContainer, type Runtime } from '../runtime/runtime.ts'

type Manifest = {
  machine: string
  /** The machine's newest run when this was kept: the next one may use it. */
  generation: number
  beginning: string
  imageDigest: string
  /** Runtime, CRIU and kernel. */
  madeWith: string
  boot: string
  files: Record<string, { bytes: number; crc: number }>
}

const MANIFEST = 'manifest.json'
const GB = 1024 ** 3
const AT_ONCE_BYTES = 64 * 1024

/**
 * Writes down what a run that stands still has in memory, for the machine `to`: itself, or a copy that is being
 * made. It stands still afterwards. False where that cannot be in time; never rejects.
 */
export async function dumpCheckpoint(
  host: EngineContext,
  machine: Machine,
  to: string,
  timeoutMs: number,
): Promise<boolean> {
  const { spec, generation, beginning, monitor } = machine.record
  const runtime = host.runtimes.get(spec.isolation)
  // What has a SIGKILL coming would die of it again.
  if (!runtime?.criu || beginning === undefined || !monitor || hasPendingKill(monitor)) return false
  const { container } = host.paths.run(spec.id, generation)
  const { memoryNext } = host.paths.machine(to)
  try {
    if (!(await hasRoom(host, memoryInUse(host.cgroups, container)))) return false
    await host.effect('engine.checkpoint.dump', async () => {
      await removeTree(memoryNext)
      await mkdir(memoryNext, { recursive: true, mode: 0o700 })
      const { signal } = machine.destroySignal
      await checkpointContainer(runtime, container, memoryNext, { timeoutMs, signal })
    })
    return true
  } catch (error) {
    host.log.warn({ err: error, machine: spec.id }, 'what a machine has in memory could not be saved')
    await removeTree(memoryNext)
    return false
  }
}

/**
 * Makes what was dumped of `source` the memory of a machine that does not run, or is about to be ended.
 * `generation`: its newest run. Whether that worked; never rejects.
 */
export async function commitCheckpoint(
  host: EngineContext,
  source: MachineRecord,
  { id, generation }: { id: string; generation: number },
): Promise<boolean> {
  const { memory, memoryNext } = host.paths.machine(id)
  try {
    await host.effect('engine.checkpoint.commit', async () => {
      const files = await sumFiles(memoryNext)
      // The second time there is nothing left to do.
      if (files === null) return
      const manifest: Manifest = {
        machine: id,
        generation,
        beginning: source.beginning ?? '',
        imageDigest: source.spec.imageDigest,
        madeWith: madeWith(getRuntime(host, source.spec.isolation)),
        boot: bootId(),
        files,
      }
      await rm(memory, { recursive: true, force: true })
      await writeFile(join(memoryNext, MANIFEST), JSON.stringify(manifest), { mode: 0o600 })
      await rename(memoryNext, memory)
    })
    return await hasCheckpoint(host, { id, generation })
  } catch (error) {
    host.log.warn({ err: error, machine: id }, 'what a machine has in memory could not be kept')
    await discardCheckpoint(host.paths, id)
    return false
  }
}

/** Whether the machine has something kept from its newest run. */
export async function hasCheckpoint(
  host: EngineContext,
  { id, generation }: { id: string; generation: number },
): Promise<boolean> {
  return (await readManifest(host.paths.machine(id).memory))?.generation === generation
}

/**
 * Takes what was kept for a machine that is about to start. Answers the directory it is in where the coming run may
 * use it; nobody else ever will.
 */
export async function consumeCheckpoint(
  host: EngineContext,
  { record }: Machine,
  run: RunSpec,
): Promise<string | null> {
  const { id } = record.spec
  const { memory, memoryUsed } = host.paths.machine(id)
  return await host.effect('engine.checkpoint.consume', async () => {
    try {
      await rename(memory, memoryUsed)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
    const manifest = await readManifest(memoryUsed)
    const fault = manifest === null ? 'nothing' : await findFault(host, record, run, memoryUsed, manifest)
    if (fault === null) return memoryUsed
    if (manifest) host.log.warn({ machine: id, fault }, 'what was kept of a machine is not used')
    await discardCheckpoint(host.paths, id)
    return null
  })
}

/** Removes whatever there is kept of a machine, being kept or in use. */
export async function discardCheckpoint(paths: Paths, id: string): Promise<void> {
  const { memory, memoryNext, memoryUsed } = paths.machine(id)
  await Promise.all([memory, memoryNext, memoryUsed].map(removeTree))
}

/** What was being kept or taken when an engine died, and what is of an earlier boot. */
export async function discardIncompleteCheckpoints(paths: Paths, id: string): Promise<void> {
  const { memory, memoryNext, memoryUsed } = paths.machine(id)
  const isGood = (await readManifest(memory))?.boot === bootId()
  const bad = isGood ? [memoryNext, memoryUsed] : [memory, memoryNext, memoryUsed]
  await Promise.all(bad.map(removeTree))
}

async function findFault(
  host: EngineContext,
  { spec, generation }: MachineRecord,
  run: RunSpec,
  directory: string,
  manifest: Manifest,
): Promise<string | null> {
  const runtime = getRuntime(host, spec.isolation)
  if (!runtime.criu) return 'there is no CRIU any more'
  const expected = {
    machine: spec.id,
    generation,
    beginning: startFingerprintOf(run),
    imageDigest: spec.imageDigest,
    madeWith: madeWith(runtime),
    boot: bootId(),
  }
  for (const [name, value] of Object.entries(expected)) {
    if (manifest[name as keyof typeof expected] !== value) return `another ${name}`
  }
  const files = await sumFiles(directory)
  return JSON.stringify(files) === JSON.stringify(manifest.files) ? null : 'its files are damaged'
}

/** Null where there is no such directory. */
async function sumFiles(directory: string): Promise<Manifest['files'] | null> {
  const names = await readdir(directory).catch(() => null)
  if (names === null) return null
  const sums = names
    .filter((name) => name !== MANIFEST)
    .toSorted()
    .map(async (name) => [name, await sumFile(join(directory, name))] as const)
  return Object.fromEntries(await Promise.all(sums))
}

async function sumFile(path: string): Promise<{ bytes: number; crc: number }> {
  const { size } = await stat(path)
  // Most of the images are tiny, and dozens of them: read at once they take a tenth of the time.
  if (size <= AT_ONCE_BYTES) {
    const content = readFileSync(path)
    return { bytes: content.length, crc: crc32(content) }
  }
  let [bytes, crc] = [0, 0]
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) {
    bytes += (chunk as Buffer).length
    crc = crc32(chunk as Buffer, crc)
  }
  return { bytes, crc }
}

async function readManifest(directory: string): Promise<Manifest | null> {
  try {
    return JSON.parse(await readFile(join(directory, MANIFEST), 'utf8')) as Manifest
  } catch {
    return null
  }
}

/** The images lie beside the pool: what they take, disks cannot have. */
async function hasRoom(host: EngineContext, bytes: number): Promise<boolean> {
  const { bavail, bsize } = await statfs(host.paths.machines)
  return bavail * bsize > bytes + host.reserveGb * GB
}

function madeWith({ class: name, version, criu }: Runtime): string {
  return `${name} ${version}, CRIU ${criu?.version ?? 'none'}, Linux ${release()}`
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
}
