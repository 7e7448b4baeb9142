// What each reference last led to: a tag moves, a digest does not. One small file a reference, beside the
// images, so that instances sharing them share the answers too.

import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { readIfThere, replaceFile } from './store.ts'

export type Resolution = { digest: string; resolvedAt: Date }

export type References = {
  find(reference: string): Promise<Resolution | null>
  save(reference: string, resolution: Resolution): Promise<void>
}

const fileSchema = z.object({ reference: z.string(), digest: z.string(), resolvedAt: z.coerce.date() })

export async function openReferences(imagesDir: string): Promise<References> {
  const directory = join(imagesDir, 'references')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const pathOf = (reference: string) => join(directory, createHash('sha256').update(reference).digest('hex'))

  return {
    find: async (reference) => {
      const text = await readIfThere(pathOf(reference))
      if (text === null) return null
      const { digest, resolvedAt } = fileSchema.parse(JSON.parse(text))
      return { digest, resolvedAt }
    },
    save: (reference, resolution) =>
      replaceFile(pathOf(reference), JSON.stringify({ reference, ...resolution })),
  }
}
