// The images directory for the operator's commands, with or without a running Berth: locks in the directory
// coordinate the two.

import { join } from 'node:path'
import { type Clock, MINUTE } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { run } from '../kernel/programs.ts'
import { buildImage, type Builder } from './build.ts'
import { openBuilds } from './builds.ts'
import { type BuiltIn, referenceOf } from './builtin.ts'
import { builtIns } from './builtin-images.ts'
import { imageLimits } from './image-limits.ts'
import { removeUnused, statusesOf } from './garbage-collection.ts'
import { takeLock } from '../../../lib/file-lock.ts'
import { findPackages, mainVersion, type Packages } from './packages.ts'
import { askDebian, type Asked, type Condition, conditionsOf, lastAsked, type Refresher } from './refresh.ts'
import { type KeptImage, openStore } from './store.ts'
import type { FindUpdates } from './updates.ts'
import { findReferences, type ImageReferences } from './instances.ts'

export type InventoryOptions = {
  imagesDir: string
  onProgress: (line: string) => void
  findUpdates: FindUpdates
  signal: AbortSignal
  clock: Clock
  log: Log
  /** For tests. */
  builder?: Builder
  definitions?: BuiltIn[]
}

export type Listed = {
  reference: string
  kind: 'built-in' | 'pulled'
  /** Null: it is not here. */
  digest: string | null
  bytes: number
  madeAt: Date | null
  usedAt: Date | null
  /** The version of a built-in image's main program. */
  version: string | null
  /** When Debian last published its packages. */
  archiveAt: string | null
  packages: Packages
  /** Ids of the machines that use it. */
  machines: string[]
  /** A sentence: whether it is up to date, and if not, why. */
  condition: string
}

export type Inventory = {
  list(): Promise<Listed[]>
  /** Returns why not all machines are known; then nothing is removed. */
  unknownMachines(): Promise<string[]>
  lastAsked(): Promise<Asked | null>
  /** Asks Debian about every built-in image that is here. */
  check(): Promise<Condition[]>
  /** Builds it if it is missing or out of date; returns whether it did. */
  build(definition: BuiltIn): Promise<boolean>
  /** Returns why it stays, or null once it is removed. */
  remove(digest: string): Promise<string | null>
  /** Removes all images that no machine uses, except the newest builds of built-in images. */
  removeUnused(): Promise<Listed[]>
}

/** The time between a request for an image and its unit's record, with a large margin. */
const JUST_ASKED_MS = MINUTE
const SIZE_MS = 2 * MINUTE

export async function openInventory(options: InventoryOptions): Promise<Inventory> {
  const { imagesDir, onProgress, findUpdates, signal, clock, log } = options
  const { builder = buildImage, definitions = builtIns } = options
  const store = await openStore(imagesDir, clock)
  const builds = await openBuilds(imagesDir, { store, builder, clock })
  const building = { onProgress, limits: imageLimits, signal }
  const shared = { imagesDir, store, builds, definitions, findUpdates, clock, log }
  // A build that is requested explicitly is always made.
  const refresher: Refresher = { ...shared, building, reserveBytes: 0 }
  const usesNow = () => findReferences(imagesDir, clock)

  const list = async () => await listAll(refresher, await usesNow())

  const remove = async (digest: string): Promise<string | null> => {
    const uses = await usesNow()
    const image = (await store.list()).find((each) => each.image.digest === digest)
    if (!image) return 'It is not here.'
    const machines = uses.byDigest.get(digest) ?? []
    if (machines.length > 0) return `Units are made of it: ${machines.join(', ')}.`
    if (uses.unknown.length > 0) return `Units may be made of it. ${uses.unknown.join(' ')}`
    const askedMs = clock.now().getTime() - (image.usedAt?.getTime() ?? -Infinity)
    // Negative if the host's clock was set back since.
    if (askedMs >= 0 && askedMs < JUST_ASKED_MS)
      return 'A call has just asked for it, so a unit may be about to use it. Try again later.'
    const gone = await removeUnused({ store, imagesDir, clock }, image)
    return gone ? null : 'It is in use at the moment. Try again later.'
  }

  return {
    list,
    remove,
    lastAsked: () => lastAsked(imagesDir),
    unknownMachines: async () => (await usesNow()).unknown,
    check: async () => {
      const lock = await takeLock(join(imagesDir, 'locks', 'refresh'), signal)
      try {
        await askDebian(refresher)
      } finally {
        await lock.release()
      }
      return await conditionsOf(refresher)
    },
    build: async (definition) => {
      const [condition] = await conditionsOf({ ...refresher, definitions: [definition] })
      if (!condition || condition.due === 'no') return false
      const replaced = condition.build?.image.digest ?? null
      await builds.build(definition, replaced, { ...building, background: false })
      return true
    },
    removeUnused: async () => {
      const standing = await statusesOf({ builds, definitions })
      const stale = (await store.list()).filter((image) => standing(image) !== 'current')
      const listed = await listAll(refresher, await usesNow())
      const removed: Listed[] = []
      for (const { image } of stale) {
        const told = listed.find(({ digest }) => digest === image.digest)
        if ((await remove(image.digest)) === null && told) removed.push(told)
      }
      return removed
    },
  }
}

async function listAll(refresher: Refresher, uses: ImageReferences): Promise<Listed[]> {
  const { store, imagesDir, builds, definitions } = refresher
  const [conditions, standing, asked, kept] = await Promise.all([
    conditionsOf(refresher),
    statusesOf({ builds, definitions }),
    lastAsked(imagesDir),
    store.list(),
  ])
  const here: Listed[] = []
  // One after the other, because sizes are read from the disk.
  for (const image of kept) {
    const isCurrent = standing(image) === 'current'
    const condition = conditions.find(({ build }) => build?.image.digest === image.image.digest)
    const said = isCurrent && condition ? currentCondition(condition, asked) : staleCondition(standing(image))
    here.push(await describe(image, definitions, uses, said))
  }
  const missing = conditions.filter(({ build }) => build === null).map(missingImage)
  return [...here, ...missing].toSorted((a, b) => (a.reference < b.reference ? -1 : 1))
}

async function describe(
  { image, rootfs, build, madeAt, usedAt }: KeptImage,
  definitions: BuiltIn[],
  uses: ImageReferences,
  condition: string,
): Promise<Listed> {
  const { reference, digest } = image
  const isBuiltIn = reference.startsWith('berth.local/')
  const packages = (isBuiltIn ? findPackages(rootfs) : null) ?? {}
  const definition = definitions.find((each) => referenceOf(each) === reference)
  return {
    reference,
    kind: isBuiltIn ? 'built-in' : 'pulled',
    digest,
    bytes: await sizeOf(rootfs),
    madeAt,
    usedAt,
    version: definition ? mainVersion(definition.version, definition.packages, packages) : null,
    archiveAt: build?.archiveAt ?? null,
    packages,
    machines: uses.byDigest.get(digest) ?? [],
    condition: isBuiltIn ? condition : 'pulled',
  }
}

function missingImage(condition: Condition): Listed {
  const isChanged = condition.due === 'definition'
  const why = isChanged ? 'not built: its definition has changed' : 'not built yet'
  return {
    reference: referenceOf(condition.definition),
    kind: 'built-in',
    digest: null,
    bytes: 0,
    madeAt: null,
    usedAt: null,
    version: null,
    archiveAt: null,
    packages: {},
    machines: [],
    condition: [why, ...failureOf(condition)].join('; '),
  }
}

function currentCondition(condition: Condition, asked: Asked | null): string {
  const { updates } = condition.state
  const words = updates.map(({ name, has, offers }) => `${name} ${has ?? 'none'} → ${offers}`)
  const isKnown = asked !== null && asked.failed === 0
  const said =
    updates.length > 0
      ? `out of date: ${words.slice(0, 3).join(', ')}${updates.length > 3 ? `, ${updates.length - 3} more` : ''}`
      : `up to date${isKnown ? ` on ${asked.at.toISOString().slice(0, 10)}` : ' as far as known'}`
  return [said, ...failureOf(condition)].join('; ')
}

function failureOf({ state: { failed } }: Condition): string[] {
  if (failed === null) return []
  const times = failed.times === 1 ? 'once' : `${failed.times} times`
  return [`building it failed ${times}, last on ${failed.at.toISOString().slice(0, 16)}: ${failed.reason}`]
}

function staleCondition(standing: 'current' | 'replaced' | 'other'): string {
  return standing === 'replaced' ? 'an older build' : 'of another definition'
}

async function sizeOf(path: string): Promise<number> {
  const { stdout } = await run('du', ['-sx', '--block-size=1', path], { timeoutMs: SIZE_MS })
  return Number(stdout.split('\t')[0] ?? 0)
}
