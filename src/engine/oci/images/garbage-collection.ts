// Removes unused images: the image of a unit stays as long as the unit, and so does the newest build of each built-in
// image (decisions/images.md). A use that begins meanwhile wins (store.ts).

import { statfs } from 'node:fs/promises'
import { type Clock, MINUTE } from '../../../lib/clock.ts'
import type { Builds } from './builds.ts'
import { type BuiltIn, definitionDigest } from './builtin.ts'
import type { References } from './references.ts'
import type { ImageStore, KeptImage } from './store.ts'
import { findReferences, type ImageReferences } from './instances.ts'

export type GarbageCollector = {
  imagesDir: string
  store: ImageStore
  builds: Builds
  references: References
  definitions: BuiltIn[]
  clock: Clock
}

export type Limits = {
  /** How long an image stays that no unit uses and no call asked for. */
  keepMs: number
  /** With less free space than this, unused images are removed at once, least recently used first. */
  reserveBytes: number
}

/** The time between a request for an image and its unit's record: images requested within it stay. */
export const RECENTLY_USED_MS = 10 * MINUTE

/** The role of an image in this Berth. */
export type ImageStatus = 'current' | 'replaced' | 'other'

export type Collected = {
  removed: KeptImage[]
  /** Why none was removed: not all machines are known. */
  unknown: string[]
}

export async function collectImages(collector: GarbageCollector, limits: Limits): Promise<Collected> {
  const { store, imagesDir, clock } = collector
  const uses = await findReferences(imagesDir, clock)
  if (uses.unknown.length > 0) return { removed: [], unknown: uses.unknown }
  const standings = await statusesOf(collector)
  const removed: KeptImage[] = []
  await noteUses(store, uses, clock)
  for (const image of (await store.list()).toSorted((a, b) => idleSince(a) - idleSince(b))) {
    const facts = { image, standing: standings(image), uses, now: clock.now() }
    const isShort = (await freeBytes(imagesDir)) < limits.reserveBytes
    if (!isOverdue(facts, { ...limits, isShort })) continue
    if (await removeUnused(collector, image)) removed.push(image)
  }
  await collector.references.prune(async (digest) => (await store.find(digest)) !== null)
  return { removed, unknown: [] }
}

/**
 * Records the use of images by units, so that an image stays for a while after its last unit. A time in the future is
 * from a clock that was set back since.
 */
async function noteUses(store: ImageStore, uses: ImageReferences, clock: Clock): Promise<void> {
  for (const image of await store.list()) {
    const { digest } = image.image
    const idleMs = clock.now().getTime() - idleSince(image)
    if (idleMs < 0 || (uses.byDigest.has(digest) && idleMs >= RECENTLY_USED_MS))
      await store.hold(digest, async () => {})
  }
}

type Facts = { image: KeptImage; standing: ImageStatus; uses: ImageReferences; now: Date }

/** Whether an image may be removed, and is due. */
export function isOverdue(
  { image, standing, uses, now }: Facts,
  { keepMs, isShort }: { keepMs: number; isShort: boolean },
): boolean {
  const idleMs = now.getTime() - idleSince(image)
  if (standing === 'current' || uses.byDigest.has(image.image.digest) || idleMs < RECENTLY_USED_MS)
    return false
  return isShort || standing === 'replaced' || idleMs >= keepMs
}

/** Removes an image unless a machine uses it, or a call has asked for it since. */
export async function removeUnused(
  { store, imagesDir, clock }: Pick<GarbageCollector, 'store' | 'imagesDir' | 'clock'>,
  seen: KeptImage,
): Promise<boolean> {
  return await store.remove(seen.image.digest, async (image) => {
    const uses = await findReferences(imagesDir, clock)
    const isWanted = uses.byDigest.has(image.image.digest) || uses.unknown.length > 0
    return !isWanted && image.usedAt?.getTime() === seen.usedAt?.getTime()
  })
}

export async function statusesOf({
  builds,
  definitions,
}: Pick<GarbageCollector, 'builds' | 'definitions'>): Promise<(image: KeptImage) => ImageStatus> {
  const current = new Set<string>()
  const ours = new Set<string>()
  for (const definition of definitions) {
    ours.add(await definitionDigest(definition))
    const build = await builds.find(definition)
    if (build) current.add(build.image.digest)
  }
  return ({ image, build }) => {
    if (current.has(image.digest)) return 'current'
    // Others may be the newest ones of another version of Berth that shares the directory.
    return ours.has(build?.definition ?? image.digest) ? 'replaced' : 'other'
  }
}

function idleSince({ usedAt, madeAt }: KeptImage): number {
  return (usedAt ?? madeAt).getTime()
}

export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize
}
