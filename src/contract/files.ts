// Files of a unit: boot files in its spec (spec 2.3) and the files endpoints (spec 4.2).

import { z } from 'zod'
import { textOfBytes } from '../lib/byte-text.ts'
import { queryFlag, queryInteger, strict, text, timestamp } from './fields.ts'
import { limits } from './limits.ts'
import { unitUserSchema } from './unit-user.ts'
import {
  FILE_PATH,
  pathSchema,
  isPlainPath,
  pathEncodingSchema,
  withPath,
  pathText,
  base64Of,
  isCanonicalBase64,
} from './file-paths.ts'

/** Base64 exactly as an encoder writes it. */
const canonicalBase64 = z.string().refine(isCanonicalBase64, {
  error: 'must be base64 with its padding, complete and without line breaks',
})

export const bootFilesSchema = z
  .record(
    pathSchema,
    z.union([text(limits.bootFilesBytes), strict({ base64: canonicalBase64 })], {
      error: 'must be a string or { "base64": CONTENT }',
    }),
  )
  .refine((files) => Object.keys(files).length <= limits.bootFiles, {
    error: `must be at most ${limits.bootFiles} files`,
    abort: true,
  })
  .refine(
    (files) =>
      bootFileContents(files).reduce((sum, file) => sum + file.content.length, 0) <= limits.bootFilesBytes,
    {
      error: `must be at most ${limits.bootFilesBytes} bytes in all`,
    },
  )
  .refine((files) => !hasFileAsDirectory(Object.keys(files)), {
    error: 'one path is both a file and the directory of another',
  })

/** In sorted order, a file of a directory comes right after the directory. */
function hasFileAsDirectory(paths: string[]): boolean {
  const ordered = paths.map((path) => `${path}/`).sort()
  return ordered.some((path, index) => ordered[index + 1]?.startsWith(path))
}

export type BootFiles = Record<string, string | { base64: string }>

export function bootFileContents(files: BootFiles): { path: string; content: Buffer }[] {
  return Object.entries(files).map(([path, value]) => ({
    path,
    content: typeof value === 'string' ? Buffer.from(value) : Buffer.from(value.base64, 'base64'),
  }))
}

/** The header of a read with the mode of the file, in the form of `fileModeSchema`. */
export const FILE_MODE_HEADER = 'berth-file-mode'

/** Permission bits in octal, as `chmod` takes them. */
const fileModeSchema = z
  .string()
  .regex(/^0?[0-7]{1,4}$/, 'must be a mode in octal digits, such as "0755"')
  .optional()
  .describe(
    'The mode of the file, in octal: "0755". Without it an existing file keeps its mode, and a new one gets 0644. ' +
      'An existing file keeps its owner, unless `user` names another.',
  )

/** For whom something is written, as the engine takes it. */
export function ownerOf({ mode, user }: { mode?: string | undefined; user?: string | undefined }): {
  mode?: number
  user?: string
} {
  return {
    ...(mode !== undefined && { mode: Number.parseInt(mode, 8) }),
    ...(user !== undefined && { user }),
  }
}

/** Four octal digits. */
export function octalMode(mode: number): string {
  return mode.toString(8).padStart(4, '0')
}

const fileUserSchema = unitUserSchema
  .optional()
  .describe(
    "Its owner, and that of folders made above it: a name or a number of the unit's `/etc/passwd`. " +
      'Without it an existing file keeps its owner, and a new one is of root.',
  )

/** POST /v1/units/{id}/files. The base64 may contain line breaks, but must not be truncated (spec 4.2). */
export const fileWriteSchema = withPath({
  contentBase64: z
    .string()
    .refine((content) => isCanonicalBase64(withoutLineBreaks(content)), {
      error: 'must be complete base64, with its padding; this looks cut short or is not base64',
    })
    .refine((content) => decodeFile(content).length <= limits.fileBytes, {
      error: `a file must be at most ${limits.fileBytes} bytes`,
    }),
  mode: fileModeSchema,
  user: fileUserSchema,
}).meta({ id: 'FileWrite' })

const readerSchema = unitUserSchema
  .optional()
  .describe(
    "As whom to read: a name or a number of the unit's `/etc/passwd`, who may not see or read all. Without it: as root.",
  )

export const fileQuerySchema = withPath({ user: readerSchema })

export const fileBytesQuerySchema = withPath({ mode: fileModeSchema, user: fileUserSchema })

export const namedPathFields = { path: z.string(), pathEncoding: pathEncodingSchema }

export const fileWrittenSchema = strict({
  ...namedPathFields,
  bytes: z.int(),
  sha256: z.string(),
  verified: z.boolean().describe('Whether the unit computed the same SHA-256 from its disk.'),
  warning: z
    .string()
    .optional()
    .describe('Present if the path is a boot file, which is written again at each start.'),
}).meta({ id: 'FileWritten' })
export type FileWritten = z.infer<typeof fileWrittenSchema>

export const fileReadSchema = strict({ ...namedPathFields, contentBase64: z.string() }).meta({
  id: 'FileRead',
})
export type FileRead = z.infer<typeof fileReadSchema>

export function withDirectory<T extends z.ZodRawShape>(more: T) {
  return withPath(
    more,
    (path) => path === '/' || isPlainPath(path),
    'must be an absolute path of a directory, such as "/app", without "." , ".." or empty parts',
  )
}

export const directoryQuerySchema = withDirectory({
  after: text(limits.pathLength).optional().describe('The `next` of an earlier answer.'),
  limit: queryInteger(1, limits.directoryPageEntries, limits.directoryPageEntries),
  depth: queryInteger(1, limits.directoryDepth, 1).describe(
    'How far down to list: with 2 also the entries of its folders. Links are not followed.',
  ),
  user: readerSchema,
})

const entryFacts = {
  type: z.enum(['file', 'directory', 'link', 'other']),
  mode: z.string().describe('In four octal digits, such as "0755".'),
  bytes: z.int(),
  modifiedAt: timestamp,
  uid: z.int().describe('The number of its owner.'),
  gid: z.int().describe('The number of its group.'),
  owner: z.string().nullable().describe("The owner's name in the unit; null if it has none."),
  group: z.string().nullable().describe("The group's name in the unit; null if it has none."),
}

/** GET /v1/units/{id}/files/facts. */
export const fileFactsQuerySchema = withDirectory({ user: readerSchema })

export const fileFactsSchema = strict({
  ...namedPathFields,
  ...entryFacts,
  target: z
    .string()
    .nullable()
    .describe(
      'Where a link leads, as it is written in it, with U+FFFD for what is not UTF-8; null for others.',
    ),
}).meta({ id: 'FileFacts' })
export type FileFacts = z.infer<typeof fileFactsSchema>

/** POST /v1/units/{id}/directory. */
export const directoryMakeSchema = withPath({ mode: fileModeSchema, user: fileUserSchema }).meta({
  id: 'DirectoryMake',
})

export const directoryMadeSchema = strict({
  ...namedPathFields,
  made: z.boolean().describe('Whether it was not there before.'),
}).meta({ id: 'DirectoryMade' })
export type DirectoryMade = z.infer<typeof directoryMadeSchema>

/** POST /v1/units/{id}/files/move. */
export const fileMoveSchema = withPath({
  to: text(limits.pathLength).describe('The new path, in base64 like `path` with `pathEncoding`.'),
  user: fileUserSchema,
})
  .refine(({ to, ...named }) => isPlainPath(pathText({ ...named, path: to })), {
    path: ['to'],
    error: FILE_PATH,
  })
  .meta({ id: 'FileMove' })

export const fileMovedSchema = strict(namedPathFields).meta({ id: 'FileMoved' })

export const directoryListSchema = strict({
  ...namedPathFields,
  entries: z
    .array(
      strict({
        name: z.string().describe('Of an entry further down, its path from the listed folder.'),
        encoding: z
          .literal('base64')
          .optional()
          .describe(
            'Present if the name is not UTF-8. `name` is then the base64 of its bytes; give paths so with ' +
              '`pathEncoding=base64`.',
          ),
        ...entryFacts,
      }).meta({ id: 'DirectoryEntry' }),
    )
    .describe('Sorted by name.'),
  next: z
    .string()
    .nullable()
    .describe('Send it as `after` for the entries after these; null on the last page.'),
  truncated: z
    .boolean()
    .describe(
      `The directory has more than ${limits.directoryEntries} entries, and only that many can be listed.`,
    ),
}).meta({ id: 'DirectoryList' })
export type DirectoryList = z.infer<typeof directoryListSchema>

/** A name in a list. */
export function namedEntry(name: string): { name: string; encoding?: 'base64' } {
  return name.isWellFormed() ? { name } : { name: base64Of(name), encoding: 'base64' }
}

// No name has a slash, so with one it is a name in base64.

export function cursorAfter(name: string): string {
  return name.isWellFormed() ? name : `/${base64Of(name)}`
}

export function nameBefore(cursor: string): string {
  return cursor.startsWith('/') ? textOfBytes(Buffer.from(cursor.slice(1), 'base64')) : cursor
}

export const fileDeleteQuerySchema = withPath({
  recursive: queryFlag.describe('Delete a directory with its content.'),
})

export const fileDeletedSchema = strict(namedPathFields).meta({ id: 'FileDeleted' })

export const archiveQuerySchema = withDirectory({ user: readerSchema })

export const archiveWriteQuerySchema = withDirectory({
  keep: queryFlag.describe(
    'Files that exist are written in place, as by `cp -r`. They keep their mode and owner, and links are followed.',
  ),
})

export const archiveWrittenSchema = strict({
  ...namedPathFields,
  bytes: z.int().describe('The size of the archive.'),
}).meta({ id: 'ArchiveWritten' })
export type ArchiveWritten = z.infer<typeof archiveWrittenSchema>

/** Returns the bytes of a `contentBase64` that fileWriteSchema accepted. */
export function decodeFile(contentBase64: string): Buffer {
  return Buffer.from(withoutLineBreaks(contentBase64), 'base64')
}

function withoutLineBreaks(content: string): string {
  return content.replace(/[\r\n]+/g, '')
}
