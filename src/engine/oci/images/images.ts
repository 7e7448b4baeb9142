// Images: from a reference to a read-only root directory on this host (design 3). They are pulled with skopeo and
// unpacked with umoci, or built from Debian packages; once each, then stored.

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import {
  builtInRegistry,
  type ImageReference,
  parseImageReference,
} from '../../../contract/image-reference.ts'
import { getAccount } from '../../../lib/system-users.ts'
import { type Clock, MINUTE } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { Image, PullWaiter } from '../../engine.ts'
import { isEngineError } from '../../errors.ts'
import type { OnPulls } from '../../pull-progress.ts'
import { buildImage } from './build.ts'
import { type Builds, openBuilds } from './builds.ts'
import { builtIns, findBuiltIn } from './builtin-images.ts'
import { type ImageLimits, imageLimits } from './image-limits.ts'
import type { HostPort } from '../../../lib/dial.ts'
import { imageError } from './failures.ts'
import { removeTree } from './files.ts'
import { type Charge, unchanged } from '../kernel/team-groups.ts'
import { pullImage } from './pull.ts'
import { createPullBoard } from './progress.ts'
import { createPullQueue, type Pull } from './pull-queue.ts'
import { openReferences, type References } from './references.ts'
import type { RegistryOptions } from './registry.ts'
import { type ImageStore, openStore, type StoredImage } from './store.ts'
import { updatesBy } from './updates.ts'
import { runMaintenance, type MaintenanceSettings } from './maintenance.ts'
import { registerInstance, type InstanceOnHost, unregisterInstance } from './instances.ts'

export type ImagesOptions = {
  /** May be shared between instances. */
  imagesDir: string
  /** This instance's own; it contains credentials of pulls in progress, so it is on a memory file system. */
  runDir: string
  /** Pulls stop if the file system of `imagesDir` has less free space than this. */
  reserveGb: number
  registryMirrors: Record<string, string>
  registryAuthFile: string | null
  /** The operator's HTTP proxy, for hosts without direct internet access. */
  upstreamProxy: HostPort | null
  /** Called with a line for a person, because building an image takes a while. */
  onProgress: (line: string) => void
  limits?: Partial<ImageLimits>
  /** The charge of a pull for the network group of the team that asked first. Default: the service's own. */
  chargeTo?: (group: number) => Charge
  /** The instance whose machines use these images, which are then never removed. Null: it has no machines. */
  instance: InstanceOnHost | null
  /** Null: no automatic builds and removals. */
  maintenance: MaintenanceSettings | null
  log: Log
  clock: Clock
}

export type Images = {
  /** Makes an image present; `reference` is canonical. Concurrent pulls of one image are one (pull-queue.ts). */
  pull(reference: string, waiter?: PullWaiter): Promise<Image>
  /** Tells how far the images are that machines wait for, until the signal aborts. */
  watchPulls(onPulls: OnPulls, signal: AbortSignal): Promise<void>
  /** Ends the waits of a machine that will not be created any more. */
  giveUp(id: string): void
  /** Returns an image that is present, by digest, and its root directory. */
  find(digest: string): Promise<StoredImage | null>
  /** Runs work with images that cannot be removed meanwhile: until a record says that a machine uses them. */
  hold<T>(digests: string[], work: (stored: (StoredImage | null)[]) => Promise<T>): Promise<T>
  list(): Promise<Image[]>
  /** Ends all work; incomplete images are removed. `isEmpty`: the instance has no machines any more. */
  close(options?: { isEmpty: boolean }): Promise<void>
}

/** A tag is looked up again after this; until then, and while its registry is down, the last answer is used. */
const TAG_FRESH_MS = 5 * MINUTE

const GB = 1024 ** 3

/** What every pull needs. */
type Parts = {
  store: ImageStore
  builds: Builds
  references: References
  registry: RegistryOptions
  options: ImagesOptions
  closing: AbortSignal
}

export async function openImages(options: ImagesOptions): Promise<Images> {
  const closing = new AbortController()
  const runDir = join(options.runDir, 'images')
  await removeTree(runDir)
  await mkdir(runDir, { recursive: true, mode: 0o700 })
  const { imagesDir, clock, instance } = options
  const store = await openStore(imagesDir, clock)
  if (instance) await registerInstance(imagesDir, instance, clock)
  const parts: Parts = {
    store,
    builds: await openBuilds(imagesDir, { store, builder: buildImage, clock }),
    references: await openReferences(options.imagesDir),
    registry: {
      runDir,
      mirrors: options.registryMirrors,
      authFile: options.registryAuthFile,
      upstreamProxy: options.upstreamProxy,
      account: await getAccount('berth-images'),
      limits: { ...imageLimits, ...options.limits },
    },
    options,
    closing: closing.signal,
  }
  const board = createPullBoard(clock)
  const pulls = createPullQueue({ ...options, board, closing: closing.signal })
  const maintenance = startMaintenance(parts)

  return {
    find: (digest) => store.find(digest),
    hold: (digests, work) => holdAll(store, digests, work),
    list: async () => (await store.list()).map(({ image }) => image),
    pull: async (text, waiter) => {
      const reference = parseImageReference(text)
      const image = await pulls.pull(reference.canonical, waiter ?? null, (pull) =>
        getImage(parts, reference, pull),
      )
      return { ...image, reference: reference.canonical }
    },
    watchPulls: (onPulls, signal) => board.watch(onPulls, signal),
    giveUp: (id) => pulls.giveUp(id),
    close: async ({ isEmpty } = { isEmpty: false }) => {
      closing.abort(new Error('images are closing'))
      await pulls.drain()
      await maintenance
      await removeTree(runDir)
      if (instance && isEmpty) await unregisterInstance(imagesDir, instance)
    },
  }
}

/** If it throws, it is stuck: the error is not caught, so the engine ends and is restarted. */
async function startMaintenance({
  store,
  builds,
  references,
  registry,
  options,
  closing,
}: Parts): Promise<void> {
  const { imagesDir, maintenance: settings, instance, clock, log } = options
  if (!settings || !instance) return
  const reserveBytes = options.reserveGb * GB
  const shared = { imagesDir, store, builds, definitions: builtIns, clock, log }
  const building = { onProgress: () => {}, limits: registry.limits, signal: closing }
  const findUpdates = updatesBy(join(options.runDir, 'updates'))
  await runMaintenance(
    { instance, settings, reserveBytes, clock, log },
    { collector: { ...shared, references }, refresher: { ...shared, findUpdates, building, reserveBytes } },
  )
}

async function holdAll<T>(
  store: ImageStore,
  [digest, ...others]: string[],
  work: (stored: (StoredImage | null)[]) => Promise<T>,
): Promise<T> {
  if (digest === undefined) return await work([])
  return await store.hold(digest, (first) => holdAll(store, others, (rest) => work([first, ...rest])))
}

async function getImage(parts: Parts, reference: ImageReference, pull: Pull): Promise<Image> {
  if (reference.registry === builtInRegistry) return await getBuiltIn(parts, reference, pull)
  const { store, references, options } = parts
  const known = await references.find(reference.canonical)
  const cached = known && (await use(store, known.digest))
  // Negative if the host's clock was set back: its age is then unknown.
  const ageMs = options.clock.now().getTime() - (known?.resolvedAt.getTime() ?? 0)
  // A digest always refers to the same image.
  if (cached && ((ageMs >= 0 && ageMs < TAG_FRESH_MS) || reference.digest !== null)) return cached.image
  try {
    return await pull.inTurn(() => getRemote(parts, reference, pull))
  } catch (error) {
    if (!cached || !isEngineError(error, 'image_unavailable')) throw error
    const image = reference.canonical
    options.log.warn({ image, err: error }, 'registry is down; using the last known image')
    return cached.image
  }
}

async function getRemote(parts: Parts, reference: ImageReference, pull: Pull): Promise<Image> {
  const { store, references, registry, options } = parts
  const reserveBytes = options.reserveGb * GB
  const charge = pull.group === null ? unchanged : (options.chargeTo?.(pull.group) ?? unchanged)
  const { progress, signal } = pull
  const image = await pullImage(reference, { store, registry, reserveBytes, charge, progress, signal })
  // It may have been removed since it was found.
  if (!(await use(store, image.digest))) return await getRemote(parts, reference, pull)
  const resolvedAt = options.clock.now()
  await references.save(reference.canonical, { digest: image.digest, resolvedAt })
  return image
}

/** Returns the existing build, however old: a start of a unit never waits for Debian. */
async function getBuiltIn(parts: Parts, reference: ImageReference, pull: Pull): Promise<Image> {
  const { builds, store, registry, options, closing } = parts
  const definition = findBuiltIn(reference.repository, reference.tag)
  if (!definition) throw imageError('image_not_found', reference.canonical)
  const there = await builds.use(definition)
  if (there) return there.image
  pull.progress.begin('building')
  const building = {
    onProgress: options.onProgress,
    onLine: (line: string) => pull.progress.line(line),
    limits: registry.limits,
    background: false,
    signal: closing,
  }
  const { image } = await builds.build(definition, null, building)
  return (await use(store, image.digest)) ? image : await getBuiltIn(parts, reference, pull)
}

/** Records the use, which keeps it until a machine is made of it (garbage-collection.ts). */
async function use(store: ImageStore, digest: string): Promise<StoredImage | null> {
  return await store.hold(digest, async (stored) => stored)
}
