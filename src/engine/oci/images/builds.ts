// The builds of built-in images: the newest good build of each definition, and newer packages that Debian has for it.
// One small file per definition, next to the images. A unit keeps the build it was made with; new units get the
// newest (decisions/builtin-images.md).

import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Clock } from '../../../lib/clock.ts'
import { readIfThere } from '../../../lib/read-if-there.ts'
import { type Builder, type BuildOptions } from './build.ts'
import { type BuiltIn, definitionDigest } from './builtin.ts'
import { plainSystem } from './builtin-images.ts'
import { replaceFile } from './files.ts'
import { type ImageStore, type StoredImage } from './store.ts'

const stateSchema = z.object({
  /** Null: none was made yet, or it is from before this was recorded. */
  digest: z.string().nullable(),
  /** Newer packages that Debian had when it was last asked. */
  updates: z.array(z.object({ name: z.string(), has: z.string().nullable(), offers: z.string() })),
  /** Failed builds since the last good one. */
  failed: z.object({ at: z.coerce.date(), times: z.number(), reason: z.string() }).nullable(),
})
export type BuildState = z.infer<typeof stateSchema>

const nothing: BuildState = { digest: null, updates: [], failed: null }

export type Builds = {
  stateOf(definition: BuiltIn): Promise<BuildState>
  /** Returns the newest good build if it is here. Does not wait or ask anyone. */
  find(definition: BuiltIn): Promise<StoredImage | null>
  /** The same, and records its use. */
  use(definition: BuiltIn): Promise<StoredImage | null>
  /** Makes a build to replace the given one, or the first; of concurrent callers one makes it. */
  build(definition: BuiltIn, replaced: string | null, options: BuildOptions): Promise<StoredImage>
  /** Records Debian's newer packages for a build, which may no longer be the newest. */
  noteUpdates(
    definition: BuiltIn,
    found: { digest: string; updates: BuildState['updates'] },
    signal: AbortSignal,
  ): Promise<void>
}

const MAX_REASON = 300

export async function openBuilds(
  imagesDir: string,
  { store, builder, clock }: { store: ImageStore; builder: Builder; clock: Clock },
): Promise<Builds> {
  const directory = join(imagesDir, 'builds')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const pathOf = (id: string) => join(directory, id.slice('sha256:'.length))

  const read = async (id: string): Promise<BuildState> => {
    const text = await readIfThere(pathOf(id))
    return text === null ? nothing : stateSchema.parse(JSON.parse(text))
  }
  const write = async (id: string, state: BuildState) => await replaceFile(pathOf(id), JSON.stringify(state))

  /** Earlier releases named builds by their definition only. */
  const newestOf = async (id: string) => (await read(id)).digest ?? id
  const find = async (definition: BuiltIn) =>
    await store.find(await newestOf(await definitionDigest(definition)))

  /** Runs work with the root of the plain system; null where the image does not contain it all, or it is not here. */
  const withPlainSystem = async <T>(
    { name, packages }: BuiltIn,
    work: (rootfs: string | null) => Promise<T>,
  ): Promise<T> => {
    const contains = plainSystem.packages.every((each) => packages.includes(each))
    if (name === plainSystem.name || !contains) return await work(null)
    const digest = await newestOf(await definitionDigest(plainSystem))
    return await store.hold(digest, async (stored) => await work(stored?.rootfs ?? null))
  }

  return {
    stateOf: async (definition) => await read(await definitionDigest(definition)),
    find,
    use: async (definition) =>
      await store.hold(await newestOf(await definitionDigest(definition)), async (stored) => stored),

    build: async (definition, replaced, options) => {
      const id = await definitionDigest(definition)
      const key = workOn(id)
      return await store.locked(key, options.signal, async () => {
        const there = await find(definition)
        if (there && there.image.digest !== replaced) return there
        const before = await read(id)
        try {
          const made = await withPlainSystem(definition, async (system) => {
            const fill = async (workshop: Parameters<Builder>[1]) =>
              await builder(definition, workshop, { ...options, plainSystem: system })
            return await store.makeUnder(key, fill, options.signal)
          })
          await write(id, { ...nothing, digest: made.image.digest })
          return made
        } catch (error) {
          if (!options.signal.aborted) {
            const times = (before.failed?.times ?? 0) + 1
            await write(id, { ...before, failed: { at: clock.now(), times, reason: reasonOf(error) } })
          }
          throw error
        }
      })
    },

    noteUpdates: async (definition, { digest, updates }, signal) => {
      const id = await definitionDigest(definition)
      await store.locked(workOn(id), signal, async () => {
        const state = await read(id)
        if ((state.digest ?? id) === digest) await write(id, { ...state, updates })
      })
    },
  }
}

/** The name of a definition's lock and workshop: not its digest, which may be that of an image in use. */
function workOn(id: string): string {
  return `sha256:${createHash('sha256').update(`builds of ${id}`).digest('hex')}`
}

/** A short reason for the operator, who finds the whole error in the log. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const text = cause instanceof Error ? cause.message : String(cause)
  return text.replace(/\s+/g, ' ').slice(-MAX_REASON)
}
