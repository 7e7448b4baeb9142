// The images directory. `<hex of the digest>/{rootfs,image.json,used}` is a complete image. Instances may share the
// directory. They coordinate with lock files, `locks/<hex>`, which the kernel holds:
//
// - An image is made under `making-<hex>`, flushed and renamed, with the exclusive lock. A crash leaves a `making-`
//   directory without a holder, which the next process removes.
// - A user of an image shares its lock and writes the time into `used`. A remover has the exclusive lock, then asks
//   whether the image may go, and renames it away first: so an image is never taken from a unit that is being
//   created (reliability F22).
//
//
// Everything but the root file systems is readable by root only, so that an image cannot pass anything to other
// processes on this host.

import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rename, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Clock } from '../../../lib/clock.ts'
import { allSettled } from '../../../lib/concurrency/all-settled.ts'
import { runOrThrow } from '../kernel/programs.ts'
import { readIfThere } from '../../../lib/read-if-there.ts'
import type { Image } from '../../engine.ts'
import type { VolumeData } from './builtin.ts'
import { removeTree } from './files.ts'
import { imageConfigSchema } from './image-config.ts'
import { type FileLock, takeLock, tryLock } from '../../../lib/file-lock.ts'
import { digestOf } from './manifest.ts'

/** A stored image, and its root directory. */
export type StoredImage = {
  image: Image
  rootfs: string
  /** Null: it was not built here. */
  build: BuildRecord | null
}

/** What a built-in image was made of. Older images have no such record. */
export type BuildRecord = {
  /** The digest of its definition (builtin.ts). */
  definition: string
  /** When Debian last published its packages. */
  archiveAt: string | null
  /** What it has for new volumes. */
  volumeData?: VolumeData | undefined
}

export type KeptImage = StoredImage & {
  madeAt: Date
  /** When it was last requested or used; null: never. */
  usedAt: Date | null
}

/** A directory to make an image in: `rootfs` becomes the image's, `scratch` is removed. Neither exists yet. */
export type BuildDirectory = { rootfs: string; scratch: string }

export type NewImage = Image & { build?: BuildRecord }

export type ImageStore = {
  find(digest: string): Promise<StoredImage | null>
  list(): Promise<KeptImage[]>
  /**
   * Makes an image unless it exists. `maker` identifies the source: at most one process works on the same image from
   * the same source. Makers with another source do not wait, and the first to finish wins.
   */
  make(
    of: { digest: string; maker: string },
    fill: (workshop: BuildDirectory) => Promise<Omit<Image, 'digest'>>,
    signal: AbortSignal,
  ): Promise<StoredImage>
  /**
   * Makes an image whose digest may be known only once it is filled; `key` names the work, like a digest. The caller
   * holds the lock of the key. An existing image with that digest stays.
   */
  makeUnder(
    key: string,
    fill: (workshop: BuildDirectory) => Promise<NewImage>,
    signal: AbortSignal,
  ): Promise<StoredImage>
  /** Runs work with the exclusive lock of a digest, or of a similar name. */
  locked<T>(digest: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>
  /** Runs work with an image that cannot be removed meanwhile; null if it is not here. */
  hold<T>(digest: string, work: (stored: StoredImage | null) => Promise<T>): Promise<T>
  /** Removes an image if `mayGo` allows it once it is unused; returns whether it is gone. */
  remove(digest: string, mayGo: (image: KeptImage) => Promise<boolean>): Promise<boolean>
}

const digestPattern = /^sha256:([0-9a-f]{64})$/
const buildSchema = z.object({
  definition: z.string(),
  archiveAt: z.string().nullable(),
  volumeData: z.object({ mount: z.string(), archive: z.string(), directory: z.string() }).optional(),
})
const imageFileSchema = z.object({
  reference: z.string(),
  digest: z.string(),
  config: imageConfigSchema,
  build: buildSchema.nullish(),
})
const FLUSH_TIMEOUT_MS = 300_000

export async function openStore(directory: string, clock: Clock): Promise<ImageStore> {
  await mkdir(join(directory, 'locks'), { recursive: true, mode: 0o700 })
  await removeLeftovers(directory)

  const homeOf = (digest: string) => join(directory, hexOf(digest))
  const find = async (digest: string) => await readImage(homeOf(digest))
  const lock = async (digest: string, signal?: AbortSignal, kind?: 'shared') =>
    await takeLock(lockPath(directory, hexOf(digest)), signal, kind)

  const locked = async <T>(digest: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> =>
    await releasing(await lock(digest, signal), work)

  const getMade = async (digest: string): Promise<StoredImage> => {
    const made = await find(digest)
    if (!made) throw new Error(`image ${digest} vanished after it was created`)
    return made
  }

  const makeUnder: ImageStore['makeUnder'] = async (key, fill, signal) => {
    // Read with the lock: afterwards it may be removed.
    return await make(directory, key, fill, async (work, made) => {
      return await locked(made, signal, async () => {
        if (!(await find(made))) await work(homeOf(made))
        return await getMade(made)
      })
    })
  }

  return {
    find,
    locked,
    list: async () => {
      const digests = (await readdir(directory)).filter((name) => /^[0-9a-f]{64}$/.test(name))
      const found = await Promise.all(digests.map((hex) => readKept(join(directory, hex))))
      return found.flatMap((kept) => (kept ? [kept] : []))
    },
    make: async ({ digest, maker }, fill, signal) => {
      const key = digestOf(`${maker} ${digest}`)
      const filled = async (workshop: BuildDirectory) => ({ ...(await fill(workshop)), digest })
      return await locked(
        key,
        signal,
        async () => (await find(digest)) ?? (await makeUnder(key, filled, signal)),
      )
    },
    makeUnder,
    hold: async (digest, work) =>
      await releasing(await lock(digest, undefined, 'shared'), async () => {
        const stored = await find(digest)
        const [result] = await allSettled([work(stored), stored ? noteUse(homeOf(digest), clock) : null])
        return result
      }),
    remove: async (digest, mayGo) => {
      const mine = await tryLock(lockPath(directory, hexOf(digest)))
      if (!mine) return false
      const leaving = join(directory, `removing-${randomUUID()}`)
      const gone = await releasing(mine, async () => {
        const kept = await readKept(homeOf(digest))
        if (!kept || !(await mayGo(kept))) return false
        await rename(homeOf(digest), leaving)
        return true
      })
      if (gone) await removeTree(leaving)
      return gone
    },
  }
}

/** Returns the result of `place`, which moves the finished image to its place. */
async function make(
  directory: string,
  key: string,
  fill: (workshop: BuildDirectory) => Promise<NewImage>,
  place: (work: (home: string) => Promise<void>, digest: string) => Promise<StoredImage>,
): Promise<StoredImage> {
  const making = join(directory, `making-${hexOf(key)}`)
  const made = join(making, 'image')
  await removeTree(making)
  await mkdir(made, { recursive: true, mode: 0o700 })
  try {
    const filled = await fill({ rootfs: join(made, 'rootfs'), scratch: join(making, 'scratch') })
    await writeFile(join(made, 'image.json'), JSON.stringify(filled), { mode: 0o600 })
    await flush(made)
    return await place(async (home) => {
      await rename(made, home)
      await flush(directory)
    }, filled.digest)
  } finally {
    await removeTree(making)
  }
}

async function readImage(home: string): Promise<StoredImage | null> {
  const text = await readIfThere(join(home, 'image.json'))
  if (text === null) return null
  const { build, ...image } = imageFileSchema.parse(JSON.parse(text))
  return { image, build: build ?? null, rootfs: join(home, 'rootfs') }
}

async function readKept(home: string): Promise<KeptImage | null> {
  const [read, madeAt, usedAt] = await Promise.all([
    readImage(home),
    timeOf(join(home, 'image.json')),
    timeOf(join(home, 'used')),
  ])
  return read && madeAt && { ...read, madeAt, usedAt }
}

async function noteUse(home: string, clock: Clock): Promise<void> {
  const path = join(home, 'used')
  const now = clock.now()
  try {
    await utimes(path, now, now)
  } catch {
    await writeFile(path, '', { mode: 0o600 })
    await utimes(path, now, now)
  }
}

async function timeOf(path: string): Promise<Date | null> {
  return await stat(path).then(
    ({ mtime }) => mtime,
    () => null,
  )
}

async function releasing<T>(lock: FileLock, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } finally {
    await lock.release()
  }
}

/** Removes `making-` directories whose lock is free, since their maker died, and half-removed images. */
async function removeLeftovers(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name.startsWith('removing-')) await removeTree(join(directory, name))
    const hex = /^making-([0-9a-f]{64})$/.exec(name)?.[1]
    const lock = hex === undefined ? null : await tryLock(lockPath(directory, hex))
    if (lock) await releasing(lock, () => removeTree(join(directory, name)))
  }
}

/** Flushes the whole file system at once: a sync for each of an image's thousands of files would take minutes. */
async function flush(path: string): Promise<void> {
  await runOrThrow('sync', ['--file-system', path], { timeoutMs: FLUSH_TIMEOUT_MS })
}

function lockPath(directory: string, hex: string): string {
  return join(directory, 'locks', hex)
}

function hexOf(digest: string): string {
  const hex = digestPattern.exec(digest)?.[1]
  if (hex === undefined) throw new Error(`not an image digest: ${digest.slice(0, 100)}`)
  return hex
}
