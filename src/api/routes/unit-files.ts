// Files of a unit beyond what fits into one JSON answer: as streams, and what is done with them in place.

import { z } from 'zod'
import { fileChangeEvents, watchQuerySchema } from '../../contract/file-changes.ts'
import {
  directoryMadeSchema,
  directoryMakeSchema,
  FILE_MODE_HEADER,
  fileBytesQuerySchema,
  fileFactsQuerySchema,
  fileFactsSchema,
  fileMovedSchema,
  fileMoveSchema,
  fileQuerySchema,
  fileWrittenSchema,
  octalMode,
  ownerOf,
} from '../../contract/files.ts'
import { pathText } from '../../contract/file-paths.ts'
import { getFileFacts, makeDirectory, moveFile } from '../../domain/units/directories.ts'
import { receiveFile, sendFile } from '../../domain/units/files.ts'
import { watchFiles } from '../../domain/units/watch-files.ts'
import { jsonBody, streamedFileBody } from '../http/body.ts'
import { byteStream } from '../http/byte-stream.ts'
import { errorSchema } from '../http/errors.ts'
import { EVENT_STREAM, eventStream } from '../http/sse.ts'
import { defineRoute, type Route } from '../route.ts'
import { aboutUnit } from './about-unit.ts'

const BYTES = 'application/octet-stream'

const send = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}/files/content',
  summary: 'Read a file of any size as its bytes',
  description:
    'If reading fails after the first byte, the connection is closed before the end of the answer. Links are followed.',
  action: 'unit.file.send',
  kind: 'read',
  query: fileQuerySchema,
  media: BYTES,
  response: z.string().meta({ format: 'binary' }),
  headers: { [FILE_MODE_HEADER]: 'The mode of the file, in four octal digits.' },
  errors: [402, 404, 409, 502],
  record: ({ query }) => query,
  handle: async (app, { params, query }, { caller, signal, addHeader }) =>
    byteStream(BYTES, (forward) =>
      sendFile(
        app,
        caller,
        params.id,
        { path: pathText(query), user: query.user },
        { onMode: (mode) => addHeader(FILE_MODE_HEADER, octalMode(mode)), send: forward },
        signal,
      ),
    ),
})

const receive = defineRoute({
  ...aboutUnit,
  method: 'PUT',
  path: '/v1/units/{id}/files/content',
  summary: 'Write a file of any size, from the bytes of the body',
  description:
    'The file is replaced once all of it is there: if the body breaks off, the old one stays. Links are followed.',
  action: 'unit.file.receive',
  kind: 'change',
  query: fileBytesQuerySchema,
  body: streamedFileBody,
  response: fileWrittenSchema,
  errors: [402, 404, 409, 413, 415, 502],
  record: ({ query }) => query,
  handle: async (app, { params, query }, { caller, signal, bodyPieces }) => {
    if (!bodyPieces) throw new TypeError('a file comes in the body of a request')
    const into = { path: pathText(query), ...ownerOf(query) }
    return await receiveFile(app, caller, params.id, into, bodyPieces(), signal)
  },
})

const facts = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}/files/facts',
  summary: 'Look at what is at a path: type, size, mode, owner',
  description: 'A link is not followed: `target` says where it leads.',
  action: 'unit.file.facts',
  kind: 'read',
  query: fileFactsQuerySchema,
  response: fileFactsSchema,
  errors: [402, 404, 409, 502],
  record: ({ query }) => query,
  handle: (app, { params, query }, { caller }) =>
    getFileFacts(app, caller, params.id, pathText(query), query.user),
})

const watch = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}/files/watch',
  summary: 'Watch a directory: what is made, written, removed, renamed or changed in it',
  description:
    'A stream of events: `ready` once it is watched, then each change with its path. `rename` tells the old path, and a ' +
    '`create` the new one. A new directory is told with what is in it, some of it perhaps twice. `overflow` says that some ' +
    'changes were lost. List the directory then. An open watch does not keep the unit awake.',
  action: 'unit.file.watch',
  kind: 'read',
  query: watchQuerySchema,
  media: EVENT_STREAM,
  response: z.string(),
  events: { ...fileChangeEvents, error: errorSchema },
  errors: [402, 404, 409, 502],
  record: ({ query }) => query,
  handle: async (app, { params, query }, { caller, signal }) =>
    eventStream(async (tell) => {
      const watched = { path: pathText(query), recursive: query.recursive }
      const reason = await watchFiles(app, caller, params.id, watched, tell, signal)
      await tell({ event: 'end', data: { reason } })
    }),
})

const move = defineRoute({
  ...aboutUnit,
  method: 'POST',
  path: '/v1/units/{id}/files/move',
  summary: 'Move or rename a file, a link or a directory',
  description:
    'A file or a link at the new path is replaced in one step. The folders above it are made. A link is moved itself.',
  action: 'unit.file.move',
  kind: 'change',
  body: jsonBody(fileMoveSchema),
  response: fileMovedSchema,
  errors: [402, 404, 409, 413, 415, 502],
  record: ({ body }) => body,
  handle: (app, { params, body }, { caller }) => {
    const to = pathText({ path: body.to, pathEncoding: body.pathEncoding })
    return moveFile(app, caller, params.id, { from: pathText(body), to, user: body.user })
  },
})

const make = defineRoute({
  ...aboutUnit,
  method: 'POST',
  path: '/v1/units/{id}/directory',
  summary: 'Make a directory, with those above it',
  description: 'One that is there already stays as it is.',
  action: 'unit.directory.make',
  kind: 'change',
  body: jsonBody(directoryMakeSchema),
  response: directoryMadeSchema,
  errors: [402, 404, 409, 413, 415, 502],
  record: ({ body }) => body,
  handle: (app, { params, body }, { caller }) =>
    makeDirectory(app, caller, params.id, { path: pathText(body), ...ownerOf(body) }),
})

export const unitFileRoutes: readonly Route[] = [send, receive, facts, watch, move, make]
