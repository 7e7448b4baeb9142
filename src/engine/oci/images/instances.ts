// Which images the machines of all instances that share an images directory use: running, stopped or asleep, each
// needs its image for its next start. The machines' records are the source; here each instance only registers where
// its records are. A unit without a record has no machine and can use any image.
//
// If that is unknown, every image counts as used.

import { mkdir, readdir, rm, stat, utimes, access } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { type Clock, DAY } from '../../../lib/clock.ts'
import { readIfThere } from '../../../lib/read-if-there.ts'
import { createPaths } from '../paths.ts'
import { loadRecords } from '../records/record.ts'
import { replaceFile } from './files.ts'

export type InstanceOnHost = { id: string; dataDir: string }

export type ImageReferences = {
  /** Digest → ids of the machines. */
  byDigest: Map<string, string[]>
  /** Why not all of them are known, as sentences. */
  unknown: string[]
}

/**
 * The disk of an instance without its data directory may just not be mounted; only after this time it counts as gone.
 */
const GONE_AFTER_MS = 30 * DAY

const fileSchema = z.object({ dataDir: z.string() })

/** Registers that an instance has machines here. Called at each start, and from time to time. */
export async function registerInstance(
  imagesDir: string,
  { id, dataDir }: InstanceOnHost,
  clock: Clock,
): Promise<void> {
  const directory = join(imagesDir, 'instances')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, id)
  await replaceFile(path, JSON.stringify({ dataDir }))
  await utimes(path, clock.now(), clock.now())
}

/** The instance has no machines any more. */
export async function unregisterInstance(imagesDir: string, { id }: { id: string }): Promise<void> {
  await rm(join(imagesDir, 'instances', id), { force: true })
}

export async function findReferences(imagesDir: string, clock: Clock): Promise<ImageReferences> {
  const uses: ImageReferences = { byDigest: new Map(), unknown: [] }
  const directory = join(imagesDir, 'instances')
  const ids = await readdir(directory).catch(() => [])
  for (const id of ids.filter((name) => /^[a-z0-9]{4}$/.test(name))) {
    const path = join(directory, id)
    const text = await readIfThere(path)
    if (text === null) continue
    const { dataDir } = fileSchema.parse(JSON.parse(text))
    if (!(await isThere(join(dataDir, 'instance.json')))) {
      const { mtime } = await stat(path)
      const isGone = clock.now().getTime() - mtime.getTime() > GONE_AFTER_MS && !(await isThere(dataDir))
      if (isGone) await rm(path, { force: true })
      else
        uses.unknown.push(
          `The instance ${id} has its machines in ${dataDir}, which is not there: remove ${path} if it is gone for good.`,
        )
      continue
    }
    await addMachines(uses, dataDir)
  }
  return uses
}

async function addMachines({ byDigest, unknown }: ImageReferences, dataDir: string): Promise<void> {
  const paths = createPaths({ dataDir, runDir: '' })
  for (const directory of [paths.machines, paths.aside]) {
    if (!(await isThere(directory))) continue
    const { records, damaged } = await loadRecords(directory)
    for (const { spec } of records)
      byDigest.set(spec.imageDigest, [...(byDigest.get(spec.imageDigest) ?? []), spec.id])
    for (const id of damaged) unknown.push(`The record of machine ${id} in ${directory} cannot be read.`)
  }
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}
