// How a path of a unit is named in a call, also one that is no text.

import { z } from 'zod'
import { bytesOfText, textOfBytes } from '../lib/byte-text.ts'
import { strict, text } from './fields.ts'
import { limits } from './limits.ts'

/** A path as a caller names it, or as an answer does. */
export type NamedPath = { path: string; pathEncoding?: 'base64' | undefined }

export const FILE_PATH =
  'must be an absolute path of a file, such as "/app/main.py", without "." , ".." or empty parts'

/** An absolute path in a unit in its normal form: without `.`, `..` and empty parts. */
export const pathSchema = text(limits.pathLength).refine(isPlainPath, { error: FILE_PATH })

export function isPlainPath(path: string): boolean {
  const [root, ...parts] = path.split('/')
  return (
    root === '' && parts.length > 0 && parts.every((part) => part !== '' && part !== '.' && part !== '..')
  )
}

export const pathEncodingSchema = z
  .literal('base64')
  .optional()
  .describe('Present if `path` is the base64 of its bytes, as of one that is not UTF-8.')

/** Of a call whose path may be base64. */
export function withPath<T extends z.ZodRawShape>(more: T, isValid = isPlainPath, error = FILE_PATH) {
  const named = { path: text(limits.pathLength), pathEncoding: pathEncodingSchema, ...more }
  return strict(named).refine((given) => isValid(pathText(given as NamedPath)), { path: ['path'], error })
}

/** The path that a caller names, as the engine takes it; empty if it is no base64. */
export function pathText({ path, pathEncoding }: NamedPath): string {
  if (pathEncoding === undefined) return path
  return isCanonicalBase64(path) ? textOfBytes(Buffer.from(path, 'base64')) : ''
}

/** The same path in an answer. */
export function namedPath(path: string): NamedPath {
  return path.isWellFormed() ? { path } : { path: base64Of(path), pathEncoding: 'base64' }
}

export function base64Of(text: string): string {
  return bytesOfText(text).toString('base64')
}

export function isCanonicalBase64(content: string): boolean {
  // Node decodes leniently, so its result must encode to the same text again.
  return content.length % 4 === 0 && Buffer.from(content, 'base64').toString('base64') === content
}
