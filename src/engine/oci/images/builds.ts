// The builds of built-in images: which one is the newest good one of a definition, and what Debian has had for it
// since. One small file a definition, beside the images. A unit keeps the build that it was made with; new ones get
// the newest (decision 59).

import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Clock } from '../../../lib/clock.ts'
import { readIfThere } from '../../../lib/read-if-there.ts'
import { type Builder, type BuildOptions } from './build.ts'
import { type BuiltIn, definitionDigest } from './builtin.ts'
import { replaceFile } from './files.ts'
import { type ImageStore, type StoredImage } from './store.ts'

const stateSchema = z.object({
  /** Null: none was made yet, or it is one of before this was written down. */
  digest: z.string().nullable(),
  /** What Debian had newer than it when it was last asked. */
  updates: z.array(z.object({ name: z.string(), has: z.string().nullable(), offers: z.string() })),
  /** Builds that failed since the last good one. */
  failed: z.object({ at: z.coerce.date(), times: z.number(), reason: z.string() }).nullable(),
})
export type BuildState = z.infer<typeof stateSchema>

const nothing: BuildState = { digest: null, updates: [], failed: null }

export type Builds = {
  stateOf(definition: BuiltIn): Promise<BuildState>
  /** The newest good build, where it is here. Asks nobody, waits for nobody. */
  find(definition: BuiltIn): Promise<StoredImage | null>
  /** The same for whoever is about to use it, who is noted. */
  use(definition: BuiltIn): Promise<StoredImage | null>
  /** Makes a build in place of the one named, null where there is none; of several who ask, one makes it. */
  build(definition: BuiltIn, replaced: string | null, options: BuildOptions): Promise<StoredImage>
  /** What Debian has by now for the build named, which may no longer be the newest. */
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

  /** Builds used to be named by their definition alone. */
  const newestOf = async (id: string) => (await read(id)).digest ?? id
  const find = async (definition: BuiltIn) =>
    await store.find(await newestOf(await definitionDigest(definition)))

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
          const fill = async (workshop: Parameters<Builder>[1]) =>
            await builder(definition, workshop, options)
          const made = await store.makeUnder(key, fill, options.signal)
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

/** What the lock and the workshop of a definition go by: not its digest, which may be that of an image in use. */
function workOn(id: string): string {
  return `sha256:${createHash('sha256').update(`builds of ${id}`).digest('hex')}`
}

/** For the operator, who reads the whole of it in the log. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const text = cause instanceof Error ? cause.message : String(cause)
  return text.replace(/\s+/g, ' ').slice(-MAX_REASON)
}
