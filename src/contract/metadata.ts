// Labels that a team gives its units, such as the user or the job that one is for. Not in the spec (9.2).

import { z } from 'zod'
import { text } from './fields.ts'
import { limits } from './limits.ts'

const { metadataEntries, metadataNameLength, metadataValueLength, metadataBytes } = limits

const nameSchema = text(metadataNameLength).min(1, 'must not be empty')

function fits(pairs: Record<string, string>): boolean {
  return Buffer.byteLength(JSON.stringify(pairs)) <= metadataBytes
}

export const metadataSchema = z
  .record(nameSchema, text(metadataValueLength))
  .refine((pairs) => Object.keys(pairs).length <= metadataEntries, {
    error: `must have at most ${metadataEntries} entries`,
  })
  .refine(fits, { error: `must be at most ${metadataBytes} bytes as JSON` })
export type Metadata = z.infer<typeof metadataSchema>

/** Pairs in one field of a query string, written as a query string themselves. */
export const metadataQuerySchema = text(metadataBytes)
  .transform((pairs, context) => {
    const given = [...new URLSearchParams(pairs)]
    const isEach = given.length > 0 && given.every(([name]) => name !== '')
    const found = new Map(given)
    if (isEach && found.size === given.length) return Object.fromEntries(found)
    context.addIssue({
      code: 'custom',
      message: 'must be pairs as in a query string, each name once, such as app%3Dshop%26user%3D7',
    })
    return z.NEVER
  })
  .pipe(metadataSchema)
  .meta({ type: 'string' })
