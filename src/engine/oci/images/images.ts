// Images: from a reference to a read-only root directory on this host (design 3). Pulled with skopeo and
// unpacked with umoci, or built from Debian packages; once each, then kept.

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import {
  builtInRegistry,
  type ImageReference,
  parseImageReference,
} from '../../../contract/image-reference.ts'
import { getAccount } from '../../../lib/accounts.ts'
import { type Clock, MINUTE } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { singleFlight } from '../../../lib/single-flight.ts'
import type { Image } from '../../engine.ts'
import { isEngineError } from '../../errors.ts'
import { buildImage } from './build.ts'
import { definitionDigest, findBuiltIn } from './builtin.ts'
import { type ImageCaps, imageCaps } from './caps.ts'
import type { HostPort } from './dial.ts'
import { imageError } from './failures.ts'
import { pullImage } from './pull.ts'
import { openReferences } from './references.ts'
import { openStore, removeTree, type StoredImage } from './store.ts'

export type ImagesOptions = {
  /** Shared between instances where the operator says so. */
  imagesDir: string
  /** This instance's own; credentials of running pulls lie there, so a memory file system. */
  runDir: string
  /** Pulls stop when the file system of `imagesDir` has less than this free. */
  reserveGb: number
  registryMirrors: Record<string, string>
  registryAuthFile: string | null
  /** The operator's HTTP proxy, for hosts without a way out of their own. */
  upstreamProxy: HostPort | null
  /** Building an image takes a while: one line at a time, for a person. */
  onProgress: (line: string) => void
  caps?: Partial<ImageCaps>
  log: Log
  clock: Clock
}

export type Images = {
  /** Makes an image present; `reference` is canonical. Concurrent pulls of one image are one. */
  pull(reference: string): Promise<Image>
  /** An image that is present, by digest, and its root directory. */
  find(digest: string): Promise<StoredImage | null>
  list(): Promise<Image[]>
  /** Ends what runs; nothing half made stays. */
  close(): Promise<void>
}

/** A tag is asked for again after this; until then, and while its registry is down, the last answer holds. */
const TAG_FRESH_MS = 5 * MINUTE

export async function openImages(options: ImagesOptions): Promise<Images> {
  const { clock, log } = options
  const caps = { ...imageCaps, ...options.caps }
  const store = await openStore(options.imagesDir, clock)
  const references = await openReferences(options.imagesDir)
  const runDir = join(options.runDir, 'images')
  await removeTree(runDir)
  await mkdir(runDir, { recursive: true, mode: 0o700 })
  const account = await getAccount('berth-images')
  const closing = new AbortController()
  const once = singleFlight<Image>()
  const running = new Set<Promise<unknown>>()

  const build = async (reference: ImageReference): Promise<Image> => {
    const definition = findBuiltIn(reference.repository, reference.tag)
    if (!definition) throw imageError('image_not_found', reference.canonical)
    const digest = await definitionDigest(definition)
    const stored = await store.make(
      digest,
      (workshop) => buildImage(definition, workshop, { ...options, caps, signal: closing.signal }),
      closing.signal,
    )
    return stored.image
  }

  const fetch = async (reference: ImageReference): Promise<Image> => {
    const image = await pullImage(reference, {
      store,
      registry: {
        runDir,
        mirrors: options.registryMirrors,
        authFile: options.registryAuthFile,
        upstreamProxy: options.upstreamProxy,
        account,
        caps,
      },
      reserveBytes: options.reserveGb * 1024 ** 3,
      signal: closing.signal,
    })
    await references.save(reference.canonical, { digest: image.digest, resolvedAt: clock.now() })
    return image
  }

  const pull = async (reference: ImageReference): Promise<Image> => {
    if (reference.registry === builtInRegistry) return await build(reference)
    const known = await references.find(reference.canonical)
    const cached = known && (await store.find(known.digest))
    const fresh = known && clock.now().getTime() - known.resolvedAt.getTime() < TAG_FRESH_MS
    if (cached && (fresh || reference.digest !== null)) return cached.image
    try {
      return await fetch(reference)
    } catch (error) {
      if (!cached || !isEngineError(error, 'image_unavailable')) throw error
      log.warn(
        { image: reference.canonical, err: error },
        'registry is down, serving the image it last named',
      )
      return cached.image
    }
  }

  return {
    find: (digest) => store.find(digest),
    list: () => store.list(),
    pull: async (text) => {
      const reference = parseImageReference(text)
      const work = once(reference.canonical, () => pull(reference))
      running.add(work)
      try {
        return { ...(await work), reference: reference.canonical }
      } finally {
        running.delete(work)
      }
    },
    close: async () => {
      closing.abort(new Error('images are closing'))
      await Promise.allSettled(running)
      await removeTree(runDir)
    },
  }
}
