// Keeps built-in images up to date: asks Debian now and then what it has that is newer than they were made of, and
// builds those anew, and those whose definition has changed. One at a time, at the lowest priority, never on the way
// of a unit: who asks for an image meanwhile gets the build that is there.

import { join } from 'node:path'
import { z } from 'zod'
import { type Clock, HOUR, MINUTE } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { readIfThere } from '../../../lib/read-if-there.ts'
import type { BuildOptions } from './build.ts'
import type { Builds, BuildState } from './builds.ts'
import { type BuiltIn, referenceOf } from './builtin.ts'
import { freeBytes } from './garbage-collection.ts'
import { replaceFile } from './files.ts'
import { tryLock } from './lock.ts'
import { type ImageStore, type StoredImage } from './store.ts'
import type { FindUpdates } from './updates.ts'

export type Refresher = {
  imagesDir: string
  store: ImageStore
  builds: Builds
  definitions: BuiltIn[]
  findUpdates: FindUpdates
  building: Omit<BuildOptions, 'background'>
  /** Nothing is built beside what is there already with less than this free. */
  reserveBytes: number
  clock: Clock
  log: Log
}

/** What there is of a built-in image, and why it is to be built, if it is. */
export type Condition = {
  definition: BuiltIn
  build: StoredImage | null
  state: BuildState
  /** `new`: nobody has asked for it here yet, so nobody builds it ahead. */
  due: 'no' | 'new' | 'definition' | 'updates'
}

const FIRST_RETRY_MS = 15 * MINUTE

/** When Debian was last asked, by anybody; `failed` counts since it last answered. */
const askedSchema = z.object({ at: z.coerce.date(), failed: z.number() })
export type Asked = z.infer<typeof askedSchema>

export async function conditionsOf({
  store,
  builds,
  definitions,
}: Pick<Refresher, 'store' | 'builds' | 'definitions'>): Promise<Condition[]> {
  const known = new Set((await store.list()).map(({ image }) => image.reference))
  return await Promise.all(
    definitions.map(async (definition) => {
      const [build, state] = await Promise.all([builds.find(definition), builds.stateOf(definition)])
      return { definition, build, state, due: dueOf(build, state, known.has(referenceOf(definition))) }
    }),
  )
}

function dueOf(build: StoredImage | null, { updates }: BuildState, isKnown: boolean): Condition['due'] {
  if (build) return updates.length > 0 ? 'updates' : 'no'
  return isKnown ? 'definition' : 'new'
}

/** One round: asks Debian if that is due, then builds one image at most. Somebody else's round is left to him. */
export async function refreshImages(refresher: Refresher, everyMs: number): Promise<void> {
  const { imagesDir, clock, log, building } = refresher
  const lock = await tryLock(join(imagesDir, 'locks', 'refresh'))
  if (!lock) return
  try {
    const asked = await lastAsked(imagesDir)
    if (isDue(asked, everyMs, clock.now())) {
      await askDebian(refresher).catch((error: unknown) =>
        log.warn({ err: error }, 'Debian could not be asked for updates of built-in images'),
      )
    }
    const next = (await conditionsOf(refresher)).find(
      ({ due, state }) => due !== 'no' && due !== 'new' && mayTry(state, everyMs, clock.now()),
    )
    if (!next) return
    if ((await freeBytes(imagesDir)) < refresher.reserveBytes) {
      log.warn('built-in images are out of date, and there is no room to build them anew')
      return
    }
    const { definition, build, due } = next
    const image = referenceOf(definition)
    log.info({ image, due, updates: next.state.updates.length }, 'a built-in image is built anew')
    const options = { ...building, background: true }
    const made = await refresher.builds.build(definition, build?.image.digest ?? null, options)
    log.info({ image, digest: made.image.digest }, 'a built-in image was built anew')
  } catch (error) {
    if (!building.signal.aborted)
      log.error({ err: error }, 'a built-in image could not be built anew: the one before stays')
  } finally {
    await lock.release()
  }
}

/** Asks about every build that is here, and writes down what there is for it. */
export async function askDebian(refresher: Refresher): Promise<void> {
  const { imagesDir, builds, clock, findUpdates, building } = refresher
  const before = await lastAsked(imagesDir)
  const note = async (asked: Asked) => await replaceFile(askedPath(imagesDir), JSON.stringify(asked))
  try {
    const present = (await conditionsOf(refresher)).flatMap(({ definition, build }) =>
      build ? [{ definition, build }] : [],
    )
    const rootfses = present.map(({ build }) => build.rootfs)
    const found = present.length === 0 ? [] : await findUpdates(rootfses, { signal: building.signal })
    for (const [i, { definition, build }] of present.entries())
      await builds.noteUpdates(
        definition,
        { digest: build.image.digest, updates: found[i] ?? [] },
        building.signal,
      )
    await note({ at: clock.now(), failed: 0 })
  } catch (error) {
    if (!building.signal.aborted) await note({ at: clock.now(), failed: (before?.failed ?? 0) + 1 })
    throw error
  }
}

export async function lastAsked(imagesDir: string): Promise<Asked | null> {
  const text = await readIfThere(askedPath(imagesDir))
  return text === null ? null : askedSchema.parse(JSON.parse(text))
}

/** Sooner after a failure, and later with each one more. A time that is yet to come is of a clock that was set. */
export function isDue(asked: Asked | null, everyMs: number, now: Date): boolean {
  if (asked === null) return true
  const sinceMs = now.getTime() - asked.at.getTime()
  return sinceMs < 0 || sinceMs >= (asked.failed === 0 ? everyMs : retryMs(asked.failed, everyMs))
}

function mayTry({ failed }: BuildState, everyMs: number, now: Date): boolean {
  return failed === null || isDue({ at: failed.at, failed: failed.times }, everyMs, now)
}

function retryMs(times: number, everyMs: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** (times - 1), Math.max(everyMs, HOUR))
}

function askedPath(imagesDir: string): string {
  return join(imagesDir, 'builds', 'asked')
}
