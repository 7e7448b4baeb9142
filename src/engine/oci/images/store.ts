// The images directory. `<hex of the digest>/{rootfs,image.json}` is an image, whole or not there: it is made
// under `making-<hex>`, flushed and renamed, by whoever holds `locks/<hex>`. A crash leaves a `making-`
// directory without a holder, which the next one to come removes. Instances may share the directory.
//
// Everything but the root file systems is root's alone: what an image wants to show to strangers' processes
// on this host, they cannot reach.

import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Clock } from '../../../lib/clock.ts'
import { runOrThrow } from '../../../lib/process.ts'
import type { Image } from '../../engine.ts'
import { imageConfigSchema } from './image-config.ts'
import { takeLock, tryLock } from './lock.ts'

/** An image that lies here, and the directory that is its root. */
export type StoredImage = { image: Image; rootfs: string }

/** A directory to make an image in: `rootfs` becomes the image's, `scratch` goes away. Neither exists yet. */
export type Workshop = { rootfs: string; scratch: string }

export type ImageStore = {
  find(digest: string): Promise<StoredImage | null>
  list(): Promise<Image[]>
  /** Makes an image unless it is there; at most one maker a digest, over all processes. */
  make(
    digest: string,
    fill: (workshop: Workshop) => Promise<Omit<Image, 'digest'>>,
    signal: AbortSignal,
  ): Promise<StoredImage>
}

const digestPattern = /^sha256:([0-9a-f]{64})$/
const imageFileSchema = z.object({ reference: z.string(), digest: z.string(), config: imageConfigSchema })
const FLUSH_TIMEOUT_MS = 300_000
const REMOVE_TIMEOUT_MS = 300_000

export async function openStore(directory: string, clock: Clock): Promise<ImageStore> {
  await mkdir(join(directory, 'locks'), { recursive: true, mode: 0o700 })
  await removeLeftovers(directory)

  const find = async (digest: string): Promise<StoredImage | null> => {
    const home = join(directory, hexOf(digest))
    const text = await readIfThere(join(home, 'image.json'))
    if (text === null) return null
    return { image: imageFileSchema.parse(JSON.parse(text)), rootfs: join(home, 'rootfs') }
  }

  return {
    find,
    list: async () => {
      const digests = (await readdir(directory)).filter((name) => /^[0-9a-f]{64}$/.test(name))
      const found = await Promise.all(digests.map((hex) => find(`sha256:${hex}`)))
      return found.flatMap((stored) => (stored ? [stored.image] : []))
    },
    make: async (digest, fill, signal) => {
      const lock = await takeLock(lockPath(directory, hexOf(digest)), clock, signal)
      try {
        const there = await find(digest)
        if (there) return there
        await make(directory, digest, fill)
      } finally {
        await lock.release()
      }
      const made = await find(digest)
      if (!made) throw new Error(`image ${digest} vanished after it was made`)
      return made
    },
  }
}

async function make(
  directory: string,
  digest: string,
  fill: (workshop: Workshop) => Promise<Omit<Image, 'digest'>>,
): Promise<void> {
  const making = join(directory, `making-${hexOf(digest)}`)
  const home = join(making, 'image')
  await removeTree(making)
  await mkdir(home, { recursive: true, mode: 0o700 })
  try {
    const filled = await fill({ rootfs: join(home, 'rootfs'), scratch: join(making, 'scratch') })
    await writeFile(join(home, 'image.json'), JSON.stringify({ ...filled, digest }), { mode: 0o600 })
    await flush(home)
    await rename(home, join(directory, hexOf(digest)))
    await flush(directory)
  } finally {
    await removeTree(making)
  }
}

/** A `making-` directory whose lock is free belongs to a maker that died. */
async function removeLeftovers(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const hex = /^making-([0-9a-f]{64})$/.exec(name)?.[1]
    const lock = hex === undefined ? null : await tryLock(lockPath(directory, hex))
    if (!lock) continue
    await removeTree(join(directory, name))
    await lock.release()
  }
}

/** The whole file system at once: a sync for each of an image's thousands of files would take minutes. */
async function flush(path: string): Promise<void> {
  await runOrThrow('sync', ['--file-system', path], { timeoutMs: FLUSH_TIMEOUT_MS })
}

/** By `rm`, which goes by directory handles: trees too deep for a path, and no link is followed. */
export async function removeTree(path: string): Promise<void> {
  await runOrThrow('rm', ['-rf', '--one-file-system', '--', path], { timeoutMs: REMOVE_TIMEOUT_MS })
}

/** Writes a small file so that readers see the old or the new one, never half. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.${randomUUID()}`
  await writeFile(temporary, text, { mode: 0o600, flush: true })
  await rename(temporary, path)
}

export async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

function lockPath(directory: string, hex: string): string {
  return join(directory, 'locks', hex)
}

function hexOf(digest: string): string {
  const hex = digestPattern.exec(digest)?.[1]
  if (hex === undefined) throw new Error(`not an image digest: ${digest.slice(0, 100)}`)
  return hex
}
