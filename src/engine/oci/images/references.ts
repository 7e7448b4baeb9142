// The last digest of each reference: a tag moves, a digest does not. One small file per reference, next to the
// images, so that instances that share them share these too.

import { createHash } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { readIfThere } from '../../../lib/read-if-there.ts'
import { replaceFile } from './files.ts'

export type Resolution = { digest: string; resolvedAt: Date }

export type References = {
  find(reference: string): Promise<Resolution | null>
  save(reference: string, resolution: Resolution): Promise<void>
  /** Deletes those whose image is not here. */
  prune(isHere: (digest: string) => Promise<boolean>): Promise<void>
}

const fileSchema = z.object({ reference: z.string(), digest: z.string(), resolvedAt: z.coerce.date() })

export async function openReferences(imagesDir: string): Promise<References> {
  const directory = join(imagesDir, 'references')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const pathOf = (reference: string) => join(directory, createHash('sha256').update(reference).digest('hex'))

  const read = async (path: string): Promise<Resolution | null> => {
    const text = await readIfThere(path)
    if (text === null) return null
    const { digest, resolvedAt } = fileSchema.parse(JSON.parse(text))
    return { digest, resolvedAt }
  }

  return {
    find: (reference) => read(pathOf(reference)),
    prune: async (isHere) => {
      const names = (await readdir(directory)).filter((name) => /^[0-9a-f]{64}$/.test(name))
      for (const path of names.map((name) => join(directory, name))) {
        const known = await read(path)
        if (known && !(await isHere(known.digest))) await rm(path, { force: true })
      }
    },
    save: (reference, resolution) =>
      replaceFile(pathOf(reference), JSON.stringify({ reference, ...resolution })),
  }
}
