// The operations of the engine's socket that are about files (protocol.ts).

import { z } from 'zod'
import { limits } from '../../contract/limits.ts'
import { MINUTE } from '../../lib/clock.ts'
import { changeTypes } from '../files.ts'
import { bytes, nothing, path, ref, SMALL } from './fields.ts'
import { directory, fileFacts, fileMode, fileOwner, machineUser } from './shapes.ts'

const MB = 1024 * 1024

const writtenFile = z.object({ bytes: z.number(), sha256: z.string(), verified: z.boolean() })

const user = machineUser.optional()

export const unaryFileOperations = {
  writeFile: {
    request: z.strictObject({ ref, path, content: bytes(limits.fileBytes), ...fileOwner.shape }),
    answer: writtenFile,
    maxBodyBytes: 2 * MB,
    deadlineMs: MINUTE,
  },
  readFile: {
    request: z.strictObject({ ref, path, maxBytes: z.int().min(0).max(limits.fileBytes), user }),
    answer: z.object({ content: bytes(limits.fileBytes), mode: fileMode }),
    maxBodyBytes: 2 * SMALL,
    deadlineMs: MINUTE,
  },
  statFile: {
    request: z.strictObject({ ref, path, user }),
    answer: fileFacts,
    maxBodyBytes: 2 * SMALL,
    deadlineMs: MINUTE,
  },
  makeDirectory: {
    request: z.strictObject({ ref, path, owner: fileOwner }),
    answer: z.boolean(),
    maxBodyBytes: 2 * SMALL,
    deadlineMs: MINUTE,
  },
  moveFile: {
    request: z.strictObject({ ref, from: path, to: path, user }),
    answer: nothing,
    maxBodyBytes: 4 * SMALL,
    deadlineMs: 3 * MINUTE,
  },
  listDirectory: {
    request: z.strictObject({ ref, path, depth: z.int().min(1).max(limits.directoryDepth).optional(), user }),
    answer: directory,
    maxBodyBytes: 2 * SMALL,
    deadlineMs: MINUTE,
  },
  removeFile: {
    request: z.strictObject({ ref, path, recursive: z.boolean() }),
    answer: nothing,
    maxBodyBytes: 2 * SMALL,
    deadlineMs: 3 * MINUTE,
  },
}

const fileChange = z.union([
  z.object({ type: z.enum(changeTypes), path: z.string(), isDirectory: z.boolean() }),
  z.object({ type: z.literal('overflow'), lost: z.enum(['changes', 'directories']) }),
])

export const streamedFileOperations = {
  watchFiles: {
    request: z.strictObject({ ref, path, recursive: z.boolean() }),
    item: z.union([z.object({ begun: z.literal(true) }), z.array(fileChange), nothing]),
    maxBodyBytes: 2 * SMALL,
  },
  readArchive: { request: z.strictObject({ ref, path, user }), item: nothing, maxBodyBytes: 2 * SMALL },
  sendFile: {
    request: z.strictObject({ ref, path, user }),
    item: z.object({ mode: fileMode }).nullable(),
    maxBodyBytes: 2 * SMALL,
  },
}

export const twoWayFileOperations = {
  writeArchive: { request: z.strictObject({ ref, path, keep: z.boolean() }), item: nothing },
  receiveFile: { request: z.strictObject({ ref, path, owner: fileOwner }), item: writtenFile },
}
