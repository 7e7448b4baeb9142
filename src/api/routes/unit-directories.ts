// Directories of a unit: list, delete, and read or write a whole directory as a tar archive.

import { z } from 'zod'
import {
  archiveQuerySchema,
  archiveWriteQuerySchema,
  archiveWrittenSchema,
  directoryListSchema,
  directoryQuerySchema,
  fileDeletedSchema,
  fileDeleteQuerySchema,
} from '../../contract/files.ts'
import { pathText } from '../../contract/file-paths.ts'
import { deleteFile, listDirectory, readArchive, writeArchive } from '../../domain/units/directories.ts'
import { archiveBody } from '../http/body.ts'
import { byteStream } from '../http/byte-stream.ts'
import { defineRoute, type Route } from '../route.ts'
import { aboutUnit } from './about-unit.ts'

const list = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}/directory',
  summary: 'List a directory',
  action: 'unit.directory.list',
  kind: 'read',
  query: directoryQuerySchema,
  response: directoryListSchema,
  errors: [402, 404, 409, 502],
  record: ({ query }) => query,
  handle: (app, { params, query }, { caller }) =>
    listDirectory(app, caller, params.id, { ...query, path: pathText(query) }),
})

const remove = defineRoute({
  ...aboutUnit,
  method: 'DELETE',
  path: '/v1/units/{id}/files',
  summary: 'Delete a file or a directory',
  description: 'If the path is a symbolic link, the link is deleted and its target stays.',
  action: 'unit.file.delete',
  kind: 'change',
  query: fileDeleteQuerySchema,
  response: fileDeletedSchema,
  errors: [402, 404, 409, 502],
  record: ({ query }) => query,
  handle: (app, { params, query }, { caller }) =>
    deleteFile(app, caller, params.id, { ...query, path: pathText(query) }),
})

const TAR = 'application/x-tar'

const read = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}/archive',
  summary: 'Read a directory as a tar archive',
  description:
    'Names in it begin with `./`. If reading fails after the first byte, the connection is closed before the end of the ' +
    'archive. The unit controls the content: unpack it as untrusted input.',
  action: 'unit.archive.read',
  kind: 'read',
  rate: 'execs',
  query: archiveQuerySchema,
  media: TAR,
  response: z.string().meta({ format: 'binary' }),
  errors: [402, 404, 409, 502],
  record: ({ query }) => query,
  handle: async (app, { params, query }, { caller, signal }) =>
    byteStream(TAR, (send) =>
      readArchive(app, caller, params.id, { ...query, path: pathText(query) }, send, signal),
    ),
})

const write = defineRoute({
  ...aboutUnit,
  method: 'PUT',
  path: '/v1/units/{id}/archive',
  summary: 'Unpack a tar archive into a directory',
  description:
    'The body is the archive, uncompressed. A missing directory is created. Files with the name of an entry are ' +
    'replaced, or written in place with `keep`; all others stay. Files belong to root. Files unpacked before a ' +
    'failure stay.',
  action: 'unit.archive.write',
  kind: 'change',
  rate: 'execs',
  query: archiveWriteQuerySchema,
  body: archiveBody,
  response: archiveWrittenSchema,
  errors: [402, 404, 409, 413, 415, 502],
  record: ({ query: { keep, ...place } }) => (keep ? { ...place, keep } : place),
  handle: async (app, { params, query }, { caller, signal, bodyPieces }) => {
    if (!bodyPieces) throw new TypeError('an archive comes in the body of a request')
    const into = { path: pathText(query), keep: query.keep }
    return await writeArchive(app, caller, params.id, into, bodyPieces(), signal)
  },
})

export const unitDirectoryRoutes: readonly Route[] = [list, remove, read, write]
