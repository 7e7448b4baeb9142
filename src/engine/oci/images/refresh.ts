// Keeps built-in images up to date: asks Debian now and then for newer packages, and rebuilds those images, and those
// whose definition has changed. One at a time, at the lowest priority; a unit never waits for it: it gets the
// existing build.

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
import { tryLock } from '../../../lib/file-lock.ts'
import { type ImageStore, type StoredImage } from './store.ts'
import type { FindUpdates } from './updates.ts'

export type Refresher = {
  imagesDir: string
  store: ImageStore
  builds: Builds
  definitions: BuiltIn[]
  findUpdates: FindUpdates
  building: Omit<BuildOptions, 'background'>
  /** Nothing is rebuilt with less free space than this. */
  reserveBytes: number
  clock: Clock
  log: Log
}

/** The state of a built-in image, and why it must be built, if so. */
export type Condition = {
  definition: BuiltIn
  build: StoredImage | null
  state: BuildState
  /** `new`: no call has asked for it here yet, so it is not built ahead. */
  due: 'no' | 'new' | 'definition' | 'updates'
}

const FIRST_RETRY_MS = 15 * MINUTE

/** When Debian was last asked, by any instance; `failed` counts since it last answered. */
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

/** One iteration: asks Debian if that is due, then builds at most one image. Skipped if another process does it. */
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
      log.warn('built-in images are out of date, and there is no room to rebuild them')
      return
    }
    const { definition, build, due } = next
    const image = referenceOf(definition)
    log.info({ image, due, updates: next.state.updates.length }, 'rebuilding built-in image')
    const options = { ...building, background: true }
    const made = await refresher.builds.build(definition, build?.image.digest ?? null, options)
    log.info({ image, digest: made.image.digest }, 'built-in image rebuilt')
  } catch (error) {
    if (!building.signal.aborted)
      log.error({ err: error }, 'rebuild of a built-in image failed; the earlier one stays')
  } finally {
    await lock.release()
  }
}

/** Asks about every build that is here, and records the results. */
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

/** Sooner after a failure, later with each further one. A time in the future is from a clock that was set. */
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
